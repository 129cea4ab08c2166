#include "master/in_process_volunteers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <asio/post.hpp>
#include <chrono>
#include <utility>

#include "common/machine_facts.hpp"
#include "common/net/tcp_link.hpp"
#include "volunteer/hello.hpp"

namespace gleaner {

LocalVolunteers::LocalVolunteers(asio::io_context& io, CoreRunner& runner,
                                 const LocalVolunteersOptions& options)
    : present_(options.count) {
  // Fixed identities: their accounts count this machine's work over all starts.
  const Hello measured = volunteer::make_hello("", "", options.threads, options.memory_bytes);
  for (std::uint32_t i = 1; i <= options.count; ++i) {
    const std::string name = options.is_referee ? "referee" : fmt::format("local-{}", i);
    const KeyId identity = options.is_referee ? kRefereeIdentity : KeyId{0, i};
    volunteer::ThreadedClient::Options client;
    client.core.hello = measured;
    client.core.hello.name = name;
    client.core.master = "the master in this process";
    client.core.retry_first = options.retry_first;
    client.core.seed = i;
    client.threads = options.threads;
    client.memory_bytes = options.memory_bytes;
    client.points.own = options.datasets;
    const Standing standing{identity, Role::kVolunteer, true, true, {}};
    client.dial = [&io, &runner, name, standing](volunteer::Client::Dialled on_dialled) {
      asio::post(io, [&io, &runner, name, standing, on_dialled = std::move(on_dialled)] {
        auto [master_end, volunteer_end] = make_memory_links(io.get_executor(), io.get_executor());
        on_dialled(volunteer_end);
        runner.admit(master_end, name, standing);
      });
    };
    client.on_exit = [this, name, on_failure = options.on_failure,
                      on_left = options.on_left](const volunteer::Exit& exit) {
      if (!exit.success && on_failure) on_failure(name, exit.error);
      if (--present_ == 0 && on_left) on_left();
    };
    clients_.push_back(std::make_unique<volunteer::ThreadedClient>(io, std::move(client)));
  }
}

void LocalVolunteers::start() {
  for (auto& client : clients_) client->start();
}

void LocalVolunteers::stop(const std::string& reason) {
  for (auto& client : clients_) client->stop(reason);
}

InProcessVolunteers::InProcessVolunteers(asio::io_context& io, CoreRunner& runner,
                                         const MasterConfig::Run& config,
                                         const volunteer::OwnDatasets& datasets,
                                         std::uint32_t threads, Console& console,
                                         std::function<void(const Error&)> on_failure)
    : io_(io),
      runner_(runner),
      config_(config),
      datasets_(datasets),
      threads_(threads),
      console_(console),
      on_failure_(std::move(on_failure)),
      fallback_(std::chrono::seconds(config.fallback_local_s)) {}

LocalVolunteersOptions InProcessVolunteers::options_of(std::uint32_t count) {
  LocalVolunteersOptions options;
  options.count = count;
  options.threads = threads_;
  options.memory_bytes = machine_facts().memory_bytes;
  options.datasets = datasets_;
  options.on_failure = [this](const std::string& name, const Error& error) {
    asio::post(io_, [this, failure = Error{error.code, name + " gave up: " + error.message}] {
      on_failure_(failure);
    });
  };
  return options;
}

void InProcessVolunteers::start() {
  if (config_.local > 0) start(config_.local);
}

void InProcessVolunteers::start(std::uint32_t count) {
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

void InProcessVolunteers::start_referee() {
  if (referee_) return;
  LocalVolunteersOptions options = options_of(1);
  options.is_referee = true;
  referee_.emplace(io_, runner_, options);
  referee_->start();
}

void InProcessVolunteers::observe(const RunProgress& now) {
  if (config_.fallback_local_s == 0) return;
  const bool takes_part = fallback_.observe(now.volunteers - now.local, monotonic_now());
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

void InProcessVolunteers::end() {
  local_.reset();
  referee_.reset();
}

}  // namespace gleaner
