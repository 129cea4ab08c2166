#include "volunteer/live_settings.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "schema/versions.hpp"

namespace gleaner::volunteer {
namespace {

Error refused(std::string sentence) {
  return {ErrorCode::kInvalidArgument, std::move(sentence)};
}

// Whether a volunteer that runs obeys a change of the setting.
bool is_live(const std::string& key) {
  return key == "volunteer.threads" || key == "network.limit_up" || key == "network.limit_down" ||
         (key.starts_with("lending.") && key != "lending.control" && key != "lending.http");
}

// Applies flags to the settings of a volunteer that runs with `threads`. After an error, also for a
// flag that only a start can obey, `config` is as it was.
Result<void> change_settings(VolunteerConfig& config, const std::vector<std::string>& flags,
                             std::uint32_t threads) {
  VolunteerConfig changed = config;
  const Settings settings = volunteer_settings(changed);
  const Result<TextToPrint> loaded =
      load_settings(settings, ProgramText{"gleaner-volunteer", kBuildVersion, {}, {}, {}, {}, {}},
                    {}, with_hours(flags));
  if (!loaded) return loaded.error();
  if (auto checked = check(changed); !checked) return checked;
  const Settings before = volunteer_settings(config);
  for (std::size_t i = 0; i < settings.all().size(); ++i) {
    const Setting& setting = settings.all()[i];
    if (is_live(setting.key) || setting.value.get() == before.all()[i].value.get()) continue;
    return refused(fmt::format(
        "{} is obeyed at the start alone: `gleaner-volunteer finish`, then start it with {}.",
        setting.flag, setting.flag));
  }
  if (changed.threads.value_or(1) > threads) {
    return refused(
        fmt::format("--threads {}: it was started with {}, and takes more at a new start alone.",
                    *changed.threads, threads));
  }
  config = std::move(changed);
  return {};
}

}  // namespace

LiveSettings::LiveSettings(VolunteerConfig config, const VolunteerOffer& offer,
                           MasterAddress address)
    : config_(std::move(config)), threads_(offer.threads), address_(std::move(address)) {
  down_->limit(config_.limit_down);
  up_->limit(config_.limit_up);
}

Limits LiveSettings::limits() const {
  return {lending_rules(config_), Millis(std::int64_t{config_.keep_shards_s} * 1000),
          config_.threads.value_or(threads_)};
}

Result<Limits> LiveSettings::change(const std::vector<std::string>& flags) {
  if (auto changed = change_settings(config_, flags, threads_); !changed) return changed.error();
  down_->limit(config_.limit_down);
  up_->limit(config_.limit_up);
  return limits();
}

Result<bool> LiveSettings::read_line() {
  if (config_.line_file.empty()) return false;
  const Result<std::string> line = read_line_file(config_.line_file);
  if (!line) return false;
  Result<MasterAddress> address = parse_master_address(address_in(*line));
  if (!address || *address == address_) return false;
  const bool is_secure = address->secure.has_value();
  if (is_secure != address_.secure.has_value() ||
      (is_secure && address->secure->key != address_.secure->key)) {
    return Error{ErrorCode::kIdentity,
                 fmt::format("{} has the line of another master now, at {}: start again to help "
                             "that one",
                             config_.line_file, to_text(address->where))};
  }
  address_ = std::move(*address);
  return true;
}

std::vector<std::string> with_hours(const std::vector<std::string>& arguments) {
  constexpr std::string_view kHours = "--hours";
  std::vector<std::string> all;
  for (const std::string& argument : arguments) {
    const bool has_value = argument.starts_with("--hours=");
    if (argument != kHours && !has_value) {
      all.push_back(argument);
      continue;
    }
    all.insert(all.end(), {"--when", "schedule", "--schedule"});
    if (has_value) all.push_back(argument.substr(kHours.size() + 1));
  }
  return all;
}

}  // namespace gleaner::volunteer
