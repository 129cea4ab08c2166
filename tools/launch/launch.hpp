// A launch, and its files, from the templates of each system that can start programs. No file is
// read or written here, and no command runs.
//
// Invariants
// - Only a secret file contains the invite of the join line; no command contains it.
// - Paths and names have passed check_launch(), so that no file needs to quote them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

struct Launch {
  bool is_master = false;        // a master rather than volunteers
  std::uint32_t volunteers = 1;  // at a time
  std::uint32_t jobs = 1;        // in all, at least `volunteers`; more run one after the other
  std::uint32_t cores = 2;       // of each
  std::uint64_t memory_bytes = std::uint64_t{4} << 30;  // of each
  std::optional<std::uint64_t> time_s;                  // longest stay of each; unset: for ever
  std::string program;                                  // its path where it runs
  std::string line;          // of volunteers: gleaner://..., or HOST:PORT in plain text
  bool is_insecure = false;  // the line is HOST:PORT
  std::string line_file;     // whole path of the file with the line
  std::string config_file;   // whole path of the master's TOML file
  std::string config_text;   // its content
  std::uint16_t port = 0;    // on which the master listens
  std::string partition;     // of Slurm; empty: the default partition
  std::string image;         // of Kubernetes: holds the programs
  std::string data_claim;    // of Kubernetes: a volume with the master's data
  std::uint64_t store_bytes = std::uint64_t{20} << 30;  // of Kubernetes: the volume of the store
  std::vector<std::string> hosts;                       // of ssh; for a master under Slurm its node
};

struct LaunchFile {
  std::string name;
  std::string text;
  bool is_secret = false;
};

// `commands`, lists of arguments, run one after the other in the folder of `files`. The first file
// is the file to review.
struct LaunchFiles {
  std::vector<LaunchFile> files;
  std::vector<std::vector<std::string>> commands;
};

// A file that a system needs, and its template: a file in templates/ that CMake embeds.
struct LaunchTemplate {
  const char* name;  // of the template
  const char* file;  // that it becomes
  bool is_of_master = false;
  bool is_secret = false;
};

struct LaunchTarget {
  const char* name;
  std::vector<LaunchTemplate> templates;
  std::vector<std::vector<std::string>> (*commands)(const Launch& launch);
  bool has_master;            // the system can run the master too
  bool has_secrets;           // the system keeps the line: `line_file` is not used
  bool needs_time_with_jobs;  // a job that never ends leaves no place for the next
};

const std::vector<LaunchTarget>& launch_targets();

// Whether `target` can launch it. An error names the flag and what to do.
Result<void> check_launch(const LaunchTarget& target, const Launch& launch);

LaunchFiles launch_files(const LaunchTarget& target, const Launch& launch);

// The text of a template; empty for another name.
std::string_view launch_template(std::string_view name);
// Lines that sandbox a volunteer's service, as in the packaged unit,
// tools/packaging/debian/gleaner-volunteer.service.
extern const char* const kVolunteerSandbox;

Error invalid(std::string sentence);

}  // namespace gleaner
