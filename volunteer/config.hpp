// A volunteer's settings, and how they are read. CONFIGURATION.md documents the keys, their
// defaults and their meaning.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/console/output.hpp"
#include "common/machine_facts.hpp"
#include "common/result.hpp"
#include "common/settings/settings_flags.hpp"
#include "common/settings/settings_value.hpp"
#include "common/thread_pool.hpp"
#include "volunteer/lend/pause_policy.hpp"

namespace gleaner {

struct VolunteerConfig {
  std::string master;     // gleaner://HOST:PORT/KEY.INVITE, or HOST:PORT in plain text
  std::string line_file;  // holds `master`; one of both is required
  bool insecure = false;  // plain text
  std::string name;       // empty: the host's
  std::optional<std::uint32_t> threads;  // unset: all cores
  int nice = kNiceIdle;                  // of the compute threads
  bool pins_threads = false;
  std::optional<std::uint64_t> memory_bytes;           // unset: half of the machine's
  std::string cache_dir;                               // empty: nothing is kept between starts
  std::uint64_t cache_bytes = std::uint64_t{4} << 30;  // of points in it
  bool once = false;
  std::uint32_t connect_timeout_ms = 10'000;
  std::optional<double> limit_up;  // Mbit/s; unset: none
  std::optional<double> limit_down;
  std::uint32_t retry_ms_min = 500;
  std::uint32_t retry_ms_max = 30'000;
  std::optional<std::uint32_t> give_up_s;  // unset: never
  std::uint32_t leave_grace_s = 4;
  std::string until;                    // as volunteer::parse_until() reads it; empty: for ever
  std::optional<volunteer::When> when;  // unset: idle where there is a desktop, else always
  std::string schedule;
  std::uint32_t idle_after_s = 180;
  bool on_battery = false;
  bool on_metered = false;
  double celsius_max = 90;
  std::uint64_t free_memory_bytes = std::uint64_t{512} << 20;
  double cpu_pressure_max = 10;
  double memory_pressure_max = 10;
  std::uint32_t keep_shards_s = 15;
  std::optional<std::uint64_t> up_bytes_per_day;  // unset: no limit
  std::optional<std::uint64_t> down_bytes_per_day;
  std::string control;  // empty: the first of volunteer::control_paths
  std::string http;     // HOST:PORT of the volunteer's page; empty: none
  LogFormat log_format = LogFormat::kText;
  bool quiet = false;
  bool verbose = false;

  friend bool operator==(const VolunteerConfig&, const VolunteerConfig&) = default;
};

// The table of keys, bound to `config`, which outlives it.
Settings volunteer_settings(VolunteerConfig& config);

// As for the master: `config` has passed check(), or `to_print` is printed instead of running.
struct VolunteerStart {
  VolunteerConfig config;
  TextToPrint to_print;
};

// The process's environment variables; unset where there are none.
struct VolunteerEnvironment {
  std::optional<std::string> master;     // GLEANER_MASTER
  std::optional<std::string> line_file;  // GLEANER_LINE_FILE
  std::optional<std::string> job_end{};  // SLURM_JOB_END_TIME, in seconds since 1970
};

// Also reads the file that holds the line, so that `master` is set in the result.
Result<VolunteerStart> load_volunteer_config(const std::vector<std::string>& arguments,
                                             const VolunteerEnvironment& environment);

Result<void> check(const VolunteerConfig& config);

// The line in the file that `--line-file` names.
Result<std::string> read_line_file(const std::string& path);

// The rules of `config`, which has passed check().
volunteer::Rules lending_rules(const VolunteerConfig& config);

// The volunteer's offer to the master: configured values, otherwise the machine's.
struct VolunteerOffer {
  std::string name;  // printable, at most kNameBytesMax
  std::uint32_t threads = 1;
  std::uint64_t memory_bytes = 0;
};

VolunteerOffer effective_offer(const VolunteerConfig& config, const MachineFacts& machine);

// The tables of CONFIGURATION.md as they must be.
std::string volunteer_reference();

}  // namespace gleaner
