#include "master/own/own_volunteers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <utility>

#include "volunteer/config.hpp"

namespace gleaner {

OwnVolunteers::OwnVolunteers(asio::io_context& io, CoreRunner& runner,
                             const MasterConfig::Run& config, std::uint32_t threads,
                             Console& console, std::function<void(const Error&)> on_failure)
    : io_(io),
      runner_(runner),
      config_(config),
      threads_(threads),
      console_(console),
      on_failure_(std::move(on_failure)),
      fallback_(std::chrono::seconds(config.fallback_local_s)) {}

LocalVolunteersOptions OwnVolunteers::options_of(std::uint32_t count) {
  LocalVolunteersOptions options;
  options.count = count;
  options.threads = threads_;
  options.memory_bytes = machine_facts().memory_bytes;
  options.on_failure = [this](const std::string& name, const Error& error) {
    asio::post(io_, [this, failure = Error{error.code, name + " gave up: " + error.message}] {
      on_failure_(failure);
    });
  };
  return options;
}

void OwnVolunteers::start() {
  if (config_.local > 0) start(config_.local);
}

void OwnVolunteers::start(std::uint32_t count) {
  LocalVolunteersOptions options = options_of(count);
  options.on_left = [this] {
    asio::post(io_, [this] {
      local_.reset();
      is_stepping_back_ = false;
    });
  };
  local_.emplace(io_, runner_, options);
  local_->start();
}

void OwnVolunteers::start_referee() {
  if (referee_) return;
  LocalVolunteersOptions options = options_of(1);
  options.is_referee = true;
  referee_.emplace(io_, runner_, options);
  referee_->start();
}

void OwnVolunteers::observe(const CoreSnapshot& now) {
  if (config_.fallback_local_s == 0) return;
  const auto others = std::count_if(now.volunteers.begin(), now.volunteers.end(),
                                    [](const VolunteerView& v) { return !v.is_local; });
  const bool takes_part = fallback_.observe(static_cast<std::uint32_t>(others), monotonic_now());
  if (takes_part && !local_) {
    console_.log(LogLevel::kWarning,
                 fmt::format("no volunteer has been here for {} s: this process trains until "
                             "somebody comes; `gleaner why run STORE` says who left, and why",
                             config_.fallback_local_s));
    start(1);
  } else if (!takes_part && local_ && !is_stepping_back_) {
    is_stepping_back_ = true;
    local_->stop("volunteers are here again");
  }
}

void OwnVolunteers::end() {
  local_.reset();
  referee_.reset();
}

}  // namespace gleaner
