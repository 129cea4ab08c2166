// The systems that can start programs, and what each can launch.
#include "tools/launch/launch.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/settings/settings_value.hpp"

namespace gleaner {
namespace {

constexpr const char* kVolunteerUnit = "gleaner-volunteer@.service";
constexpr const char* kMasterUnit = "gleaner-master.service";
constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{256} << 20;
constexpr std::uint64_t kTimeSecondsMin = 180;  // a warning may come two minutes before the end

// Letters, digits and signs that no shell, YAML file, unit or submit file reads as anything else.
bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("/._-+@:").find(c) != std::string_view::npos;
  });
}

Result<void> check_words(const Launch& launch) {
  std::vector<std::string> words = {launch.program,   launch.line_file, launch.config_file,
                                    launch.partition, launch.image,     launch.data_claim};
  words.insert(words.end(), launch.hosts.begin(), launch.hosts.end());
  for (const std::string& word : words) {
    if (is_plain(word) && !word.starts_with('-')) continue;
    return invalid(
        fmt::format("'{}' has characters that job files read in other ways: give a name of "
                    "letters, digits and / . _ - + @ : alone",
                    word));
  }
  return {};
}

Result<void> check_size(const LaunchTarget& target, const Launch& launch) {
  if (launch.memory_bytes < kMemoryBytesMin) {
    return invalid(
        fmt::format("--memory is {}: give 256M or more", bytes_text(launch.memory_bytes)));
  }
  if (launch.time_s && *launch.time_s < kTimeSecondsMin) {
    return invalid(
        fmt::format("--time is {} s: give 3m or more, so that there is time to work "
                    "before the warning of its end",
                    *launch.time_s));
  }
  if (launch.jobs < launch.volunteers) {
    return invalid(fmt::format("--jobs is {}: it must not be below --volunteers ({})", launch.jobs,
                               launch.volunteers));
  }
  if (launch.jobs == launch.volunteers) return {};
  if (!target.needs_time_with_jobs) {
    return invalid(
        fmt::format("--jobs has no meaning for {}, which starts what has ended again: "
                    "leave it out",
                    target.name));
  }
  if (!launch.time_s) {
    return invalid("--jobs needs --time: without an end no job leaves its place to the next");
  }
  return {};
}

using Commands = std::vector<std::vector<std::string>>;

Commands slurm_commands(const Launch& launch) {
  return {{"sbatch", launch.is_master ? "master.sbatch" : "volunteers.sbatch"}};
}

Commands kubernetes_commands(const Launch& launch) {
  if (launch.is_master) return {{"kubectl", "apply", "-f", "master.yaml"}};
  return {{"kubectl", "apply", "-f", "secret.yaml", "-f", "volunteers.yaml"}};
}

Commands condor_commands(const Launch&) {
  return {{"condor_submit", "volunteers.sub"}};
}

Commands systemd_commands(const Launch& launch) {
  Commands commands = {
      {"systemctl", "link", std::string("./") + (launch.is_master ? kMasterUnit : kVolunteerUnit)},
      {"systemctl", "enable", "--now"}};
  if (launch.is_master) commands.back().emplace_back(kMasterUnit);
  for (std::uint32_t i = 1; i <= launch.volunteers && !launch.is_master; ++i) {
    commands.back().push_back(fmt::format("gleaner-volunteer@{}.service", i));
  }
  return commands;
}

Commands ssh_commands(const Launch&) {
  return {{"bash", "volunteers.sh", "start"}};
}

}  // namespace

Error invalid(std::string sentence) {
  return {ErrorCode::kInvalidArgument, std::move(sentence)};
}

const std::vector<LaunchTarget>& launch_targets() {
  static const std::vector<LaunchTarget> targets = {
      {"slurm",
       {{"slurm-volunteers.sbatch", "volunteers.sbatch"},
        {"slurm-master.sbatch", "master.sbatch", true}},
       &slurm_commands,
       true,
       false,
       true},
      {"kubernetes",
       {{"kubernetes-volunteers.yaml", "volunteers.yaml"},
        {"kubernetes-secret.yaml", "secret.yaml", false, true},
        {"kubernetes-master.yaml", "master.yaml", true}},
       &kubernetes_commands,
       true,
       true,
       false},
      {"condor",
       {{"condor-volunteers.sub", "volunteers.sub"}},
       &condor_commands,
       false,
       false,
       true},
      {"systemd",
       {{"systemd-volunteer.service", kVolunteerUnit},
        {"systemd-master.service", kMasterUnit, true}},
       &systemd_commands,
       true,
       false,
       false},
      {"ssh", {{"ssh-volunteers.sh", "volunteers.sh"}}, &ssh_commands, false, false, false},
  };
  return targets;
}

Result<void> check_launch(const LaunchTarget& target, const Launch& launch) {
  const std::string_view name = target.name;
  if (launch.is_master && !target.has_master) {
    return invalid(
        fmt::format("{} starts volunteers only: launch the master by slurm, kubernetes "
                    "or systemd",
                    name));
  }
  if (launch.is_master && launch.volunteers != 1) {
    return invalid("--volunteers says how many volunteers there are: a run has one master");
  }
  if (name == "kubernetes" && launch.image.empty()) {
    return invalid("give --image, the container image that holds Gleaner's programs");
  }
  if (name == "ssh" && launch.hosts.empty()) {
    return invalid("give --hosts: names with commas between them, or a file with one on each line");
  }
  if (!launch.hosts.empty() && name != "ssh" && !(name == "slurm" && launch.is_master)) {
    return invalid("--hosts is for ssh, and for the node of a master under Slurm: leave it out");
  }
  if (launch.is_master && launch.hosts.size() > 1) {
    return invalid("--hosts names several nodes: a master runs on one");
  }
  if (auto sized = check_size(target, launch); !sized) return sized;
  return check_words(launch);
}

}  // namespace gleaner
