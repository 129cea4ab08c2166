// The table of `gleaner-volunteer status`.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "volunteer/lend/verbs.hpp"

namespace gleaner::volunteer {
namespace {

using Json = nlohmann::ordered_json;

std::string ago(const Json& seconds) {
  return seconds.is_number() ? fmt::format("{:.0f} s ago", seconds.get<double>()) : "cannot tell";
}

std::string mebibytes(const Json& bytes) {
  return fmt::format("{:.1f} MiB", bytes.get<double>() / (1 << 20));
}

// Null stands for unknown.
std::string known(const Json& value, const char* if_true, const char* if_false,
                  const char* if_null) {
  return value.is_null() ? if_null : value.get<bool>() ? if_true : if_false;
}

std::string table(const Json& status) {
  std::string text = status.at("sentence").get<std::string>() + ".\n\n";
  const auto row = [&](const std::string& name, const std::string& value) {
    text += fmt::format("  {:<16}{}\n", name, value);
  };
  const Json& verdict = status.at("verdict");
  row("master", status.at("master").get<std::string>());
  const std::string run = status.at("run_name").get<std::string>();
  const std::string purpose = status.at("purpose").get<std::string>();
  if (!run.empty()) row("run", run + (purpose.empty() ? "" : ": " + purpose));
  row("shards", fmt::format("{}, {} of memory", status.at("shards").size(),
                            mebibytes(status.at("held_bytes"))));
  row("threads", std::to_string(status.at("threads").get<unsigned>()));
  row("when", status.at("when").get<std::string>());
  if (!verdict.at("works").get<bool>()) {
    const Json& until = verdict.at("until_seconds");
    row("until",
        verdict.at("ends").get<std::string>() +
            (until.is_number() ? fmt::format(" (in {:.0f} s at the earliest)", until.get<double>())
                               : ""));
  }
  const Json& today = status.at("today");
  row("today",
      fmt::format("{} examples, {} sent, {} received", today.at("examples").get<std::uint64_t>(),
                  mebibytes(today.at("up_bytes")), mebibytes(today.at("down_bytes"))));
  for (const Json& use : status.at("uses")) {
    row("use", fmt::format("{}: {} ({})", use.at("source").get<std::string>(),
                           ago(use.at("seconds_ago")), use.at("detail").get<std::string>()));
  }
  const Json& page = status.at("page");
  if (page.is_string()) row("page", page.get<std::string>());
  const Json& machine = status.at("machine");
  row("power", known(machine.at("on_battery"), "battery", "mains", "no battery is known"));
  const Json& celsius = machine.at("celsius");
  row("temperature", celsius.is_number() ? fmt::format("{:.0f} °C", celsius.get<double>())
                                         : "unknown, which counts as cool");
  row("network", known(machine.at("metered"), "metered", "not metered",
                       "unknown, which counts as not metered"));
  return text;
}

}  // namespace

std::string status_table(const std::string& answer) {
  const Json status = Json::parse(answer, nullptr, false);
  try {
    return table(status);
  } catch (const Json::exception&) {
    return answer + "\n";  // a volunteer of another version
  }
}

}  // namespace gleaner::volunteer
