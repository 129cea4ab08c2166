// gleaner: the tools, one sub-command each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "common/settings/settings_value.hpp"
#include "schema/versions.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/verbs.hpp"

namespace {

constexpr const char* kFooter =
    "Examples:\n"
    "  gleaner inspect run1\n"
    "  gleaner checkpoint digest run1\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data, 4 no usable store.";

// "; did you mean 'status'?" for a word that is no command where it stands, and "; did you mean
// 0.2?" for a number that is none.
std::string meant(const CLI::App& app, std::string_view sentence) {
  constexpr std::string_view kBeforeValue = " = ";  // "Could not convert: --share = 0,2"
  const std::size_t value = sentence.rfind(kBeforeValue);
  if (value != std::string_view::npos) {
    return gleaner::did_you_mean_number(sentence.substr(value + kBeforeValue.size()));
  }
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::App* one :
       command->get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); })) {
    names.push_back(one->get_name());
  }
  const std::vector<std::string> unknown = app.remaining(true);
  return unknown.empty() ? "" : gleaner::did_you_mean(unknown.front(), names);
}

// CLI11's sentence, with what to do. --help and --version come this way as well and are no errors.
int report(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
  gleaner::print_error(
      fmt::format("gleaner: {}{}; `gleaner --help` lists the commands, `gleaner COMMAND --help` "
                  "what one takes",
                  error.what(), meant(app, error.what())));
  return static_cast<int>(gleaner::ExitCode::kUsage);
}

void add_verbs(CLI::App& app, int& exit_status) {
  const std::string ungrouped = app.get_group();
  const auto add_verb = [&](const char* group, void (*add)(CLI::App&, int&)) {
    add(app, exit_status);
    for (CLI::App* verb : app.get_subcommands({})) {
      if (verb->get_group() == ungrouped) verb->group(group);
    }
  };
#define GLEANER_ADD_VERB(group, add) add_verb(group, gleaner::add);
  GLEANER_VERBS(GLEANER_ADD_VERB)
#undef GLEANER_ADD_VERB
}

}  // namespace

int main(int argc, char** argv) {
  gleaner::end_in_words("gleaner");
  CLI::App app("Tools for Gleaner: data sets, stores and what is in them.", "gleaner");
  app.set_version_flag("--version", std::string("gleaner ") + gleaner::kBuildVersion);
  app.footer(kFooter);
  app.formatter(gleaner::help_format());
  int exit_status = 0;
  add_verbs(app, exit_status);
  // One verb a line: a word after it that is a verb's name as well is an argument.
  app.require_subcommand(0, 1);
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    gleaner::hide_secrets({argv, static_cast<std::size_t>(argc)});
    std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
    app.parse(std::move(arguments));
    // Not left to require_subcommand, which would hide the name of an unknown command.
    if (app.get_subcommands().empty()) throw CLI::RequiredError("A command");
  } catch (const CLI::ParseError& error) {
    return report(app, error);
  } catch (const std::exception&) {
    return gleaner::say_exception("gleaner", "this machine's memory is not enough for that");
  }
  return exit_status;
}
