// gleaner-master: wires the parts together.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/result.hpp"
#include "common/train/self_test/self_test.hpp"
#include "master/config/config.hpp"
#include "master/master_run.hpp"
#include "master/run_data.hpp"
#include "master/see/console.hpp"

namespace gleaner {
namespace {

ExitCode fail(Console& console, const Error& error, ExitCode exit) {
  console.event(RunFailed{error, exit});
  return exit;
}

ExitCode run(const MasterConfig& config, Console& console) {
  auto data =
      open_run_data(config, [&](const std::string& note) { console.log(LogLevel::kInfo, note); });
  if (!data) {
    const bool is_usage = data.error().code == ErrorCode::kInvalidArgument;
    return fail(console, data.error(), is_usage ? ExitCode::kUsage : ExitCode::kData);
  }
  return open_and_run(config, *data, console);
}

int start(const std::vector<std::string>& arguments) {
  auto loaded = load_master_config(arguments);
  if (!loaded) {
    std::fprintf(stderr, "gleaner-master: %s\n", loaded.error().message.c_str());
    return static_cast<int>(ExitCode::kUsage);
  }
  if (loaded->to_print) {
    std::fputs(loaded->to_print->c_str(), stdout);
    return static_cast<int>(ExitCode::kOk);
  }
  const MasterConfig& config = loaded->config;
  Console console(
      stdout, stderr,
      output_options(terminal_facts(stdout), config.output.log_format, config.output.quiet,
                     config.output.verbose, Journal::behind(stdout, "gleaner-master")),
      [] { return terminal_width(stdout); }, &monotonic_now);
  const Result<std::vector<std::string>> warnings = use_sound_level();
  if (!warnings) {
    return static_cast<int>(fail(console, warnings.error(), exit_code_of(warnings.error().code)));
  }
  for (const std::string& warning : *warnings) console.log(LogLevel::kWarning, warning);
  return static_cast<int>(run(config, console));
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  gleaner::end_in_words("gleaner-master");
  try {
    return gleaner::start(std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::exception&) {
    return gleaner::say_exception("gleaner-master",
                                  "this machine has no memory left to go on with. Nothing that was "
                                  "stored is lost: free some, and the same command goes on from "
                                  "the last checkpoint");
  }
}
