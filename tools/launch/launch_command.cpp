#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>

#include "common/access/addresses.hpp"
#include "common/access/secret_file.hpp"
#include "common/host_port.hpp"
#include "common/settings/settings_value.hpp"
#include "master/config/config.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/launch/launch.hpp"

namespace gleaner {

namespace {

// Runs `words` (a program as the shell finds it, and its arguments) in `folder`, with this
// process's input and output, and waits for it. An error says how it ended.
Result<void> run_command(const std::vector<std::string>& words, const std::string& folder) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  arguments.reserve(copies.size() + 1);
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) {
    return Error{ErrorCode::kResources, std::generic_category().message(error)};
  }
  int failed = ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  ::pid_t child = 0;
  if (failed == 0) {
    failed =
        ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{ErrorCode::kIo, fmt::format("{} cannot be started: {}", words.front(),
                                             std::generic_category().message(failed))};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{ErrorCode::kIo, std::generic_category().message(errno)};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{ErrorCode::kIo,
               WIFEXITED(status)
                   ? fmt::format("{} ended with status {}", words.front(), WEXITSTATUS(status))
                   : fmt::format("{} was ended by signal {}", words.front(), WTERMSIG(status))};
}

namespace fs = std::filesystem;

constexpr std::size_t kLineBytesMax = 1024;
constexpr std::size_t kConfigBytesMax = 256 << 10;

struct LaunchFlags {
  std::string target;
  std::string what;
  Launch launch;
  std::optional<std::uint32_t> volunteers, jobs;
  std::string memory, time, store_size, hosts;
  std::string output;
  bool submits = false;
  bool json = false;
};

constexpr const char* kFooter =
    "WHAT is the line that the master prints, or better a file with it; with --master the\n"
    "configuration file of gleaner-master. The files are for you to review; --submit submits "
    "them.\n"
    "What each system does with them is in tools/launch/LAUNCHING.md.\n\n"
    "Examples:\n"
    "  gleaner launch slurm line --volunteers 8 --cores 4 --memory 8G --time 4h --jobs 48\n"
    "  gleaner launch kubernetes line --volunteers 20 --image gleaner --output k8s --submit\n"
    "  gleaner launch ssh line --hosts alpha,beta --output lab --submit\n"
    "  gleaner launch systemd --master run.toml --output units\n\n"
    "Exit status: 0 done, 1 failure of the system or of a command that submits, 2 usage.";

// The program beside this one, or else as the shell finds it.
std::string program_path(const std::string& name) {
  std::error_code error;
  const fs::path self = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside = self.parent_path() / name;
  return !error && fs::exists(beside, error) ? beside.string() : name;
}

// Whole whatever the folder is in which a job begins.
Result<std::string> whole_path(const std::string& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  if (error) return Error{ErrorCode::kIo, path + ": " + error.message()};
  return whole.string();
}

Result<void> take_bytes(const char* flag, const std::string& text, std::uint64_t& bytes) {
  if (text.empty()) return {};
  const auto parsed = parse_bytes(text);
  if (!parsed) return invalid(fmt::format("{} is '{}': give a size such as 8G", flag, text));
  bytes = *parsed;
  return {};
}

// Names with commas between them, or the words of a file.
Result<std::vector<std::string>> hosts_of(const std::string& text) {
  std::string names = text;
  std::error_code error;
  if (fs::is_regular_file(text, error)) {
    std::ostringstream all;
    all << std::ifstream(text).rdbuf();
    names = all.str();
  }
  std::replace(names.begin(), names.end(), ',', ' ');
  std::istringstream words(names);
  std::vector<std::string> hosts;
  for (std::string word; words >> word;) hosts.push_back(word);
  return hosts;
}

Result<void> read_line(LaunchFlags& flags) {
  Launch& launch = flags.launch;
  std::error_code error;
  const bool is_file = fs::exists(flags.what, error);
  launch.line = flags.what;
  if (is_file) {
    auto text = read_secret_file(flags.what, kLineBytesMax, SecretFrom::kMount);
    if (!text) return text.error();
    std::istringstream words(text->value_or(""));
    words >> launch.line;
    const auto path = whole_path(flags.what);
    if (!path) return path.error();
    launch.line_file = *path;
  } else if (flags.output.empty()) {
    return invalid(
        "the line is a secret, which belongs into a file: give the file that holds it, or the "
        "folder --output DIR in which one is made");
  }
  const auto address = parse_master_address(launch.line);
  if (!address) return invalid(address.error().message);
  launch.is_insecure = !address->secure.has_value();
  return {};
}

Result<void> read_master(LaunchFlags& flags) {
  Launch& launch = flags.launch;
  const auto path = whole_path(flags.what);
  if (!path) return path.error();
  launch.config_file = *path;
  const auto loaded = load_master_config({"--config", *path});
  if (!loaded) return invalid(loaded.error().message);
  const auto listen = parse_host_port(loaded->config.network.listen);
  if (!listen || listen->port == 0) {
    return invalid(fmt::format(
        "{}: network.listen must name a port at which volunteers join, such as 0.0.0.0:7070",
        *path));
  }
  launch.port = listen->port;
  std::ostringstream text;
  text << std::ifstream(*path).rdbuf();
  launch.config_text = text.str();
  if (launch.config_text.size() > kConfigBytesMax) {
    return invalid(fmt::format("{} is longer than {} bytes", *path, kConfigBytesMax));
  }
  return {};
}

Result<void> complete(LaunchFlags& flags, const LaunchTarget& target) {
  Launch& launch = flags.launch;
  if (auto taken = take_bytes("--memory", flags.memory, launch.memory_bytes); !taken) return taken;
  if (auto taken = take_bytes("--store-size", flags.store_size, launch.store_bytes); !taken) {
    return taken;
  }
  if (!flags.time.empty()) {
    const auto seconds = parse_duration_seconds(flags.time);
    if (!seconds) return seconds.error();
    launch.time_s = *seconds;
  }
  const auto hosts = hosts_of(flags.hosts);
  if (!hosts) return hosts.error();
  launch.hosts = *hosts;
  const auto usual = static_cast<std::uint32_t>(launch.is_master ? 1 : launch.hosts.size());
  launch.volunteers = flags.volunteers.value_or(std::max(1u, usual));
  launch.jobs = flags.jobs.value_or(launch.volunteers);
  if (launch.program.empty()) {
    const std::string name = launch.is_master ? "gleaner-master" : "gleaner-volunteer";
    launch.program = target.has_secrets ? name : program_path(name);
  }
  if (flags.submits && flags.output.empty()) {
    return invalid("--submit needs --output DIR: what is submitted stays there for you to review");
  }
  if (auto read = launch.is_master ? read_master(flags) : read_line(flags); !read) return read;
  if (!flags.output.empty() && !launch.is_master && !target.has_secrets) {
    const auto path = whole_path(flags.output + "/line");
    if (!path) return path.error();
    launch.line_file = *path;
  }
  return check_launch(target, launch);
}

Result<void> write_files(const std::string& folder, const LaunchFiles& made) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return Error{ErrorCode::kIo, folder + ": " + error.message()};
  for (const LaunchFile& file : made.files) {
    const std::string path = folder + "/" + file.name;
    if (file.is_secret) {
      if (auto written = write_secret_file(path, file.text, SecretFile::kReplaced); !written) {
        return written;
      }
    } else if (!(std::ofstream(path) << file.text).flush()) {
      return Error{ErrorCode::kIo, path + ": cannot be written"};
    }
  }
  return {};
}

std::string command_text(const std::vector<std::string>& command) {
  return fmt::format("{}", fmt::join(command, " "));
}

Result<void> tell(const LaunchFlags& flags, const LaunchFiles& made) {
  Json body = Json::object();
  body["output"] = flags.output.empty() ? Json(nullptr) : Json(flags.output);
  body["files"] = Json::object();
  body["commands"] = Json::array();
  body["submitted"] = flags.submits;
  std::string text;
  for (const LaunchFile& file : made.files) {
    body["files"][file.name] = file.is_secret ? Json(nullptr) : Json(file.text);
    if (!flags.output.empty()) {
      text += fmt::format("  {}/{}{}\n", flags.output, file.name,
                          file.is_secret ? "  (secret: only its owner may read it)" : "");
    } else if (!file.is_secret) {
      text += file.text;
    }
  }
  for (const auto& command : made.commands) {
    body["commands"].push_back(command);
    if (!flags.output.empty() && !flags.submits) {
      text += fmt::format("to submit: (cd {} && {})\n", flags.output, command_text(command));
    }
  }
  return print_done(flags.json, "launch", flags.target, body, text);
}

Result<void> submit(const LaunchFlags& flags, const LaunchFiles& made) {
  for (const auto& command : made.commands) {
    if (auto done = run_command(command, flags.output); !done) return done;
  }
  return {};
}

Result<void> run(LaunchFlags& flags) {
  const auto& targets = launch_targets();
  const LaunchTarget& target =
      *std::find_if(targets.begin(), targets.end(),
                    [&](const LaunchTarget& t) { return t.name == flags.target; });
  if (auto completed = complete(flags, target); !completed) return completed;
  LaunchFiles made = launch_files(target, flags.launch);
  if (!flags.launch.is_master && !target.has_secrets && !flags.output.empty()) {
    made.files.push_back({"line", flags.launch.line + "\n", true});
  }
  if (!flags.output.empty()) {
    if (auto written = write_files(flags.output, made); !written) return written;
  }
  if (auto told = tell(flags, made); !told) return told;
  return flags.submits ? submit(flags, made) : Result<void>();
}

int exit_status_of(const Result<void>& done) {
  if (done || is_reader_lost(done)) return static_cast<int>(ExitCode::kOk);
  print_error("gleaner launch: " + done.error().message);
  return static_cast<int>(done.error().code == ErrorCode::kInvalidArgument ? ExitCode::kUsage
                                                                           : ExitCode::kFailure);
}

void add_size_options(CLI::App& verb, LaunchFlags& flags) {
  verb.add_option("--volunteers", flags.volunteers, "how many at a time (1, or one for each host)")
      ->check(CLI::Range(1u, 100'000u));
  verb.add_option("--jobs", flags.jobs,
                  "how many in all: the next job takes the place of an ended job")
      ->check(CLI::Range(1u, 1'000'000u));
  verb.add_option("--cores", flags.launch.cores, "of each")
      ->capture_default_str()
      ->check(CLI::Range(1u, 1024u));
  verb.add_option("--memory", flags.memory, "of each, such as 8G (4G unless given)");
  verb.add_option("--time", flags.time,
                  "how long each may stay, such as 4h (for ever unless given)");
}

}  // namespace

void add_launch_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("launch", "start volunteers, or a master, on what there is");
  auto flags = std::make_shared<LaunchFlags>();
  std::vector<std::string> names;
  for (const LaunchTarget& target : launch_targets()) names.emplace_back(target.name);
  verb.add_option("target", flags->target, "slurm, kubernetes, condor, systemd or ssh")
      ->required()
      ->check(CLI::IsMember(names));
  verb.add_option("what", flags->what, "the line or a file with it; with --master a TOML file")
      ->required();
  add_size_options(verb, *flags);
  verb.add_flag("--master", flags->launch.is_master, "launch the master rather than volunteers");
  verb.add_option("--program", flags->launch.program, "its path where it is to run");
  verb.add_option("--partition", flags->launch.partition, "of Slurm: where jobs may be preempted");
  verb.add_option("--hosts", flags->hosts,
                  "for ssh: names with commas, or a file; for Slurm: the master's node");
  verb.add_option("--image", flags->launch.image, "for Kubernetes: image with the programs");
  verb.add_option("--data-claim", flags->launch.data_claim,
                  "for Kubernetes: volume claim with the master's data, seen as /data");
  verb.add_option("--store-size", flags->store_size,
                  "for Kubernetes: volume of the master's store (20G unless given)");
  verb.add_option("--output", flags->output, "folder for the files; otherwise they are printed");
  verb.add_flag("--submit", flags->submits, "submit what is in --output");
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(kFooter);
  verb.callback([flags, &exit_status] { exit_status = exit_status_of(run(*flags)); });
}

}  // namespace gleaner
