#include "volunteer/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "common/access/addresses.hpp"
#include "common/access/secret_file.hpp"
#include "common/console/terminal.hpp"
#include "common/host_port.hpp"
#include "common/limits.hpp"
#include "schema/versions.hpp"
#include "volunteer/lend/machine.hpp"
#include "volunteer/lend/schedule.hpp"
#include "volunteer/lend/verbs.hpp"
#include "volunteer/live_settings.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{64} << 20;
constexpr std::size_t kLineBytesMax = 1024;

Error invalid(std::string sentence) {
  return {ErrorCode::kInvalidArgument, std::move(sentence)};
}

const ProgramText& program_text() {
  static const ProgramText text{
      "gleaner-volunteer",
      kBuildVersion,
      "gleaner://HOST:PORT/KEY.INVITE",
      "Lends this machine to a Gleaner master: fetches shards of the network, trains them, sends "
      "what changed. Waits for the master when it is not there, and comes back when the "
      "connection breaks. SIGTERM or SIGINT hands the shards over and leaves.",
      "  # Help the master on host alpha with everything this machine has.\n"
      "  gleaner-volunteer gleaner://alpha:7070/KEY.INVITE\n"
      "  # Two threads, 4 GiB, and leave when the run is over.\n"
      "  gleaner-volunteer gleaner://alpha:7070/KEY.INVITE --threads 2 --memory 4G --once\n"
      "  # A network on which everybody is trusted, and a master that was started with "
      "--insecure.\n"
      "  gleaner-volunteer alpha:7070 --insecure\n",
      "The master prints the whole address. GLEANER_MASTER in the environment sets it as well, "
      "and\n"
      "--line-file FILE or GLEANER_LINE_FILE names a file with it. The invite in it is hidden "
      "from\n"
      "other users of this machine.\n\n"
      "gleaner-volunteer --self-test prints whether this machine computes the right bits.\n\n"
      "Verbs for a running volunteer (gleaner-volunteer VERB):\n" +
          volunteer::verbs_help(),
      "volunteer.master"};
  return text;
}

void add_offer(Settings& settings, VolunteerConfig& c) {
  const SettingScope scope = SettingScope::kMachine;
  settings.begin_section("volunteer", "The master to help, and the resources to lend.");
  settings.add(
      "master", scope, "",
      "The line that the master prints; the first free argument sets it too. With --insecure "
      "HOST:PORT. Required.",
      text_setting(c.master, "ADDRESS"));
  settings.add("line_file", scope, "",
               "File that holds this line instead, read again before each attempt to connect: the "
               "master may move. Nobody but its owner and its group may read it.",
               text_setting(c.line_file, "FILE"));
  settings.add("name", scope, "", "The volunteer's name at the master. Empty: the host's name.",
               text_setting(c.name, "NAME"));
  settings.add(
      "threads", scope, "threads", "Compute threads. auto: one for every core of this machine.",
      or_auto(c.threads, [](std::uint32_t& field) { return integer_setting(field, 1, 1024); }));
  settings.add("nice", scope, "",
               "How far the compute threads give way to other programs: as for nice(1), or idle,"
               " which runs only when no other program wants the processor.",
               or_word(c.nice, integer_setting(c.nice, 0, kNiceMax), "idle", kNiceIdle));
  settings.add("pin_threads", scope, "",
               "Keep each compute thread on a processor. Helps only if nobody else computes and "
               "all processors are lent.",
               boolean_setting(c.pins_threads));
  settings.add("memory", scope, "", "Most memory for shards. auto: half of the machine's.",
               or_auto(c.memory_bytes, [](std::uint64_t& field) {
                 return bytes_setting(field, kMemoryBytesMin, std::uint64_t{1} << 50);
               }));
  settings.add("cache", scope, "",
               "Folder for the volunteer's key, by which its account at the master goes on, and "
               "for fetched examples; one folder per volunteer. Empty: nothing is kept.",
               text_setting(c.cache_dir, "DIR"));
  settings.add("cache_size", scope, "",
               "Most bytes of fetched examples in that folder. Others are fetched again in every"
               " epoch. Without a folder they take memory: at most an eighth of "
               "volunteer.memory, and 256 MiB.",
               bytes_setting(c.cache_bytes, 0, std::uint64_t{1} << 50));
  settings.add("leave_grace_s", scope, "seconds", "Time for handing over the shards.",
               integer_setting(c.leave_grace_s, 0, 86'400));
  settings.add("until", scope, "",
               "End of the volunteer's time: 4h from now, a local time such as 2026-11-26T07:00,"
               " or @ and seconds since 1970. Empty: never; in a Slurm job, the job's end.",
               text_setting(c.until, "TIME"));
  settings.add("once", scope, "",
               "Exit with 0 when the run ends. Otherwise the program stays, "
               "and looks for no other run.",
               boolean_setting(c.once));
}

void add_when(Settings& settings, VolunteerConfig& c) {
  const SettingScope scope = SettingScope::kMachine;
  settings.begin_section("lending", "When the machine may be used; see LENDING.md.");
  settings.add("when", scope, "",
               "always; idle: while nobody uses the machine; schedule: in the hours of "
               "lending.schedule. auto: idle where there is a desktop, else always.",
               or_auto(c.when, [](volunteer::When& field) {
                 return choice_setting(field, {"always", "idle", "schedule"});
               }));
  settings.add("schedule", scope, "",
               "Hours in local time, as in 19-7 or \"mon-fri 20:00-07:00, sat-sun 00:00-24:00\". "
               "--hours 19-7 sets this and lending.when.",
               text_setting(c.schedule, "HOURS"));
  settings.add("idle_after_s", scope, "seconds",
               "The machine is idle when nobody has used it for this time.",
               integer_setting(c.idle_after_s, 1, 86'400));
  settings.add("battery", scope, "", "Compute on battery too.", boolean_setting(c.on_battery));
  settings.add("metered", scope, "",
               "Use metered networks too. An unknown network counts as not metered.",
               boolean_setting(c.on_metered));
  settings.add("temperature_max", scope, "degrees Celsius",
               "Pause when a part of the machine is this hot, until it is 10 degrees cooler.",
               number_setting(c.celsius_max, 40.0, 200.0));
  settings.add("free_memory", scope, "", "Pause while other programs have less memory left.",
               bytes_setting(c.free_memory_bytes, 0, std::uint64_t{1} << 50));
  settings.add("cpu_pressure_max", scope, "percent",
               "Pause when other programs wait for a processor for this part of the time; 100: "
               "never.",
               number_setting(c.cpu_pressure_max, 1.0, 100.0));
  settings.add("memory_pressure_max", scope, "percent",
               "Pause when programs wait for memory for this part of the time; 100: never.",
               number_setting(c.memory_pressure_max, 1.0, 100.0));
  settings.add("keep_shards_s", scope, "seconds",
               "A pause that is known to end within this time keeps the shards in memory.",
               integer_setting(c.keep_shards_s, 0, 300));
  const auto bytes = [](std::uint64_t& field) {
    return bytes_setting(field, std::uint64_t{1} << 20, std::uint64_t{1} << 50);
  };
  settings.add("up_per_day", scope, "", "Send no more than this in a day; auto: no limit.",
               or_auto(c.up_bytes_per_day, bytes));
  settings.add("down_per_day", scope, "", "Receive no more than this in a day; auto: no limit.",
               or_auto(c.down_bytes_per_day, bytes));
  settings.add("control", scope, "",
               "Unix socket for status, pause and the other verbs. Empty: in the cache folder, and"
               " the first volunteer also in $RUNTIME_DIRECTORY, $XDG_RUNTIME_DIR or /tmp.",
               text_setting(c.control, "PATH"));
  SettingValue http =
      or_word(c.http, host_port_setting(c.http, false), std::string("off"), std::string());
  http.range = "such as 127.0.0.1:8091, an address in numbers";
  settings.add("http", scope, "",
               "Address of a page that shows this volunteer and can pause it; port 0 takes a "
               "free one. At 127.0.0.1 only this machine reaches it; elsewhere others see it, "
               "but cannot pause anything.",
               std::move(http));
}

void add_network(Settings& settings, VolunteerConfig& c) {
  const SettingScope scope = SettingScope::kMachine;
  settings.begin_section("network", "How the master is reached.");
  settings.add("insecure", scope, "",
               "Encrypt nothing and trust any master at the address; the master must be started "
               "with it too.",
               boolean_setting(c.insecure));
  settings.add("connect_timeout_ms", scope, "milliseconds",
               "An attempt to connect is given up after this time.",
               integer_setting(c.connect_timeout_ms, 100, 600'000));
  settings.add("limit_up", scope, "Mbit/s", "Send no more than this; auto: no limit.",
               or_auto(c.limit_up, [](double& field) {
                 return number_setting(field, kLimitMegabitsMin, 1e6);
               }));
  settings.add("limit_down", scope, "Mbit/s", "Receive no more than this; auto: no limit.",
               or_auto(c.limit_down, [](double& field) {
                 return number_setting(field, kLimitMegabitsMin, 1e6);
               }));
  settings.add("retry_ms_min", scope, "milliseconds",
               "The first pause after a failed attempt; it doubles with each attempt and has a "
               "random part.",
               integer_setting(c.retry_ms_min, 10, 3'600'000));
  settings.add(
      "retry_ms_max", scope, "milliseconds",
      "The longest pause between attempts; at most a second while the volunteer keeps shards.",
      integer_setting(c.retry_ms_max, 10, 86'400'000));
  settings.add("give_up_s", scope, "seconds",
               "Exit when no master has been reached for this time; auto: never.",
               or_auto(c.give_up_s,
                       [](std::uint32_t& field) { return integer_setting(field, 1, 31'536'000); }));
}

void add_output(Settings& settings, VolunteerConfig& c) {
  const SettingScope scope = SettingScope::kMachine;
  settings.begin_section("output", "The program's output.");
  settings.add("log_format", scope, "",
               "text: a line for people; json: the volunteer's activity as one JSON object per "
               "line.",
               choice_setting(c.log_format, {"text", "json"}));
  settings.add("quiet", scope, "", "Print only warnings and errors.", boolean_setting(c.quiet));
  settings.add("verbose", scope, "", "Print every decision.", boolean_setting(c.verbose));
}

Result<void> take_line(VolunteerConfig& config) {
  if (config.line_file.empty()) return {};
  if (!config.master.empty()) {
    return invalid(
        "volunteer.master and volunteer.line_file both name a master: give one of them.");
  }
  Result<std::string> line = read_line_file(config.line_file);
  if (!line) return line.error();
  config.master = std::move(*line);
  return {};
}

Result<void> check_page(const std::string& http) {
  if (http.empty()) return {};
  const auto address = parse_host_port(http);
  if (address && (is_loopback(address->host) || is_numeric(address->host))) return {};
  return invalid(fmt::format(
      "lending.http is {}: give an address in numbers, such as 127.0.0.1:8091 for this machine "
      "alone.",
      http));
}

// At most `bytes` of printable text, cut between code points.
std::string bounded_name(const std::string& name, std::size_t bytes) {
  std::string text = printable(name);
  if (text.size() <= bytes) return text;
  std::size_t end = bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  text.resize(end);
  return text;
}

}  // namespace

Result<std::string> read_line_file(const std::string& path) {
  auto text = read_secret_file(path, kLineBytesMax, SecretFrom::kMount);
  if (!text) return text.error();
  if (!*text) {
    return invalid(path +
                   ": there is no such file: write the line that the master prints into it.");
  }
  std::istringstream words(**text);
  std::string line, more;
  words >> line;
  if (line.empty() || words >> more) {
    return invalid(path + ": it must hold nothing but gleaner://HOST:PORT/KEY.INVITE.");
  }
  return line;
}

Settings volunteer_settings(VolunteerConfig& config) {
  Settings settings;
  add_offer(settings, config);
  add_when(settings, config);
  add_network(settings, config);
  add_output(settings, config);
  settings.show(
      {"volunteer.master",  "volunteer.line_file", "volunteer.name",       "volunteer.threads",
       "volunteer.nice",    "volunteer.memory",    "volunteer.cache",      "volunteer.until",
       "volunteer.once",    "lending.when",        "lending.schedule",     "lending.battery",
       "lending.metered",   "lending.up_per_day",  "lending.down_per_day", "lending.http",
       "network.insecure",  "network.limit_up",    "network.limit_down",   "network.give_up_s",
       "output.log_format", "output.quiet",        "output.verbose"});
  return settings;
}

Result<VolunteerStart> load_volunteer_config(const std::vector<std::string>& arguments,
                                             const VolunteerEnvironment& environment) {
  VolunteerStart start;
  const Settings settings = volunteer_settings(start.config);
  std::vector<EnvironmentValue> values;
  if (environment.master) {
    values.push_back({"GLEANER_MASTER", "volunteer.master", *environment.master});
  }
  if (environment.line_file) {
    values.push_back({"GLEANER_LINE_FILE", "volunteer.line_file", *environment.line_file});
  }
  if (environment.job_end) {
    values.push_back({"SLURM_JOB_END_TIME", "volunteer.until", "@" + *environment.job_end});
  }
  Result<TextToPrint> loaded =
      load_settings(settings, program_text(), values, volunteer::with_hours(arguments));
  if (!loaded) return loaded.error();
  start.to_print = std::move(*loaded);
  if (!start.to_print) {
    if (auto taken = take_line(start.config); !taken) return taken.error();
    start.config.master = address_in(start.config.master);
    if (auto checked = check(start.config); !checked) return checked.error();
  }
  return start;
}

Result<void> check(const VolunteerConfig& c) {
  if (c.master.empty()) {
    return invalid(
        "There is nobody to help: give the line that the master prints, as in gleaner-volunteer "
        "gleaner://HOST:PORT/KEY.INVITE.");
  }
  const auto address = parse_master_address(c.master);
  if (!address) return invalid(address.error().message);
  if (auto fits = check_secrecy(*address, c.insecure); !fits) return invalid(fits.error().message);
  if (c.retry_ms_max < c.retry_ms_min) {
    return invalid(
        fmt::format("network.retry_ms_max is {}: it must not be below "
                    "network.retry_ms_min ({}).",
                    c.retry_ms_max, c.retry_ms_min));
  }
  const auto schedule = volunteer::LendingHours::parse(c.schedule);
  if (!schedule) return invalid("lending.schedule: " + schedule.error().message + ".");
  if (c.when == volunteer::When::kSchedule && c.schedule.empty()) {
    return invalid(
        "lending.when is schedule and lending.schedule is empty: give hours, as in --schedule "
        "\"mon-fri 20:00-07:00\".");
  }
  if (!c.until.empty()) {
    if (const auto until = volunteer::parse_until(c.until, 0); !until) {
      return invalid("volunteer.until: " + until.error().message + ".");
    }
  }
  if (auto usable = check_page(c.http); !usable) return usable.error();
  if (c.name.size() > kNameBytesMax) {
    return invalid(fmt::format("volunteer.name is longer than {} bytes: choose a shorter one.",
                               kNameBytesMax));
  }
  if (c.quiet && c.verbose) {
    return invalid("output.quiet and output.verbose exclude each other: give one of them.");
  }
  return {};
}

volunteer::Rules lending_rules(const VolunteerConfig& c) {
  volunteer::Rules rules;
  rules.when = c.when;
  if (auto schedule = volunteer::LendingHours::parse(c.schedule)) rules.schedule = *schedule;
  rules.idle_after = Millis(std::int64_t{c.idle_after_s} * 1000);
  rules.on_battery = c.on_battery;
  rules.on_metered = c.on_metered;
  rules.celsius_max = c.celsius_max;
  rules.free_memory_bytes = c.free_memory_bytes;
  rules.cpu_pressure_max = c.cpu_pressure_max;
  rules.memory_pressure_max = c.memory_pressure_max;
  rules.up_bytes_per_day = c.up_bytes_per_day;
  rules.down_bytes_per_day = c.down_bytes_per_day;
  return rules;
}

VolunteerOffer effective_offer(const VolunteerConfig& config, const MachineFacts& machine) {
  VolunteerOffer offer;
  offer.name = bounded_name(config.name.empty() ? machine.host_name : config.name, kNameBytesMax);
  if (offer.name.empty()) offer.name = "volunteer";
  offer.threads = config.threads.value_or(std::max(1u, machine.cores));
  offer.memory_bytes = config.memory_bytes.value_or(machine.memory_bytes / 2);
  return offer;
}

std::string volunteer_reference() {
  VolunteerConfig config;
  return print_reference(volunteer_settings(config));
}

}  // namespace gleaner
