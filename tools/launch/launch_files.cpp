// The files of each system, from their templates, and the commands that submit them.
#include <fmt/format.h>

#include <map>

#include "common/settings/settings_value.hpp"
#include "tools/launch/launch.hpp"

namespace gleaner {
namespace {

using Values = std::map<std::string_view, std::string>;

// Whole MiB, rounded up.
std::string mebibytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  return std::to_string((bytes + kMebibyte - 1) / kMebibyte);
}

// The sandbox of the packaged unit, except where it would hide the program.
std::string sandbox() {
  constexpr std::string_view kHomeHidden = "ProtectHome=yes\n";
  std::string text = kVolunteerSandbox;
  const std::size_t at = text.find(kHomeHidden);
  GLEANER_CHECK(at != std::string::npos);
  return text.replace(at, kHomeHidden.size(), "ProtectHome=read-only\n");
}

// Hosts are used in turn.
std::string places(const Launch& launch) {
  std::string text;
  for (std::uint32_t i = 0; i < launch.volunteers && !launch.hosts.empty(); ++i) {
    text += fmt::format("{} {}\n", launch.hosts[i % launch.hosts.size()], i + 1);
  }
  return text;
}

Values values_of(const Launch& launch) {
  const std::string seconds = launch.time_s ? std::to_string(*launch.time_s) : "";
  const bool is_temporary =
      launch.program.starts_with("/tmp/") || launch.program.starts_with("/var/tmp/");
  return {
      {"volunteers", std::to_string(launch.volunteers)},
      {"jobs", std::to_string(launch.jobs)},
      {"program", launch.program},
      {"temporary_program", is_temporary ? launch.program : ""},
      {"cores", std::to_string(launch.cores)},
      {"cpu_percent", std::to_string(100 * std::uint64_t{launch.cores})},
      {"memory_mib", mebibytes(launch.memory_bytes)},
      // Half of the memory, as a volunteer takes of a whole machine.
      {"shard_memory", bytes_text(launch.memory_bytes / 2)},
      {"time_s", seconds},
      {"time_minutes", launch.time_s ? std::to_string((*launch.time_s + 59) / 60) : ""},
      {"has_no_end", launch.time_s ? "" : "yes"},
      {"timeout", launch.time_s ? "timeout --signal=TERM " + seconds + " " : ""},
      {"until", launch.time_s ? " --until " + seconds + "s" : ""},
      {"line", launch.line},
      {"line_file", launch.line_file},
      {"line_name", launch.line_file.substr(launch.line_file.rfind('/') + 1)},
      {"insecure", launch.is_insecure ? " --insecure" : ""},
      {"config_file", launch.config_file},
      {"config_folder", launch.config_file.substr(0, launch.config_file.rfind('/') + 1)},
      {"config_text", launch.config_text},
      {"port", std::to_string(launch.port)},
      {"partition", launch.partition},
      {"host", launch.hosts.empty() ? "" : launch.hosts.front()},
      {"places", places(launch)},
      {"image", launch.image},
      {"data_claim", launch.data_claim},
      {"store_mib", mebibytes(launch.store_bytes)},
      {"sandbox", sandbox()},
  };
}

// Replaces `{{name}}` by the value of that name. A line that begins with `{{?name}}` is left out
// where the value is empty. A value of several lines is indented as its line is.
std::string fill_template(std::string_view text, const Values& values) {
  constexpr std::string_view kOpen = "{{";
  constexpr std::string_view kClose = "}}";
  std::string result;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    if (line.starts_with("{{?")) {
      const std::size_t end = line.find(kClose);
      if (values.at(line.substr(3, end - 3)).empty()) continue;
      line.remove_prefix(end + kClose.size());
    }
    const std::string indent(line.substr(0, line.find_first_not_of(' ')));
    for (std::size_t at; (at = line.find(kOpen)) != std::string_view::npos;) {
      result += line.substr(0, at);
      const std::size_t end = line.find(kClose, at);
      std::string_view value = values.at(line.substr(at + kOpen.size(), end - at - kOpen.size()));
      if (value.ends_with('\n')) value.remove_suffix(1);
      for (std::size_t i = 0; i < value.size(); ++i) {
        result += value[i];
        if (value[i] == '\n' && value[i + 1] != '\n') result += indent;
      }
      line.remove_prefix(end + kClose.size());
    }
    result.append(line).append("\n");
  }
  return result;
}

}  // namespace

LaunchFiles launch_files(const LaunchTarget& target, const Launch& launch) {
  const Values values = values_of(launch);
  LaunchFiles made;
  for (const LaunchTemplate& file : target.templates) {
    if (file.is_of_master != launch.is_master) continue;
    const std::string_view text = launch_template(file.name);
    GLEANER_CHECK(!text.empty());
    made.files.push_back({file.file, fill_template(text, values), file.is_secret});
  }
  made.commands = target.commands(launch);
  return made;
}

}  // namespace gleaner
