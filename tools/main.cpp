// gleaner: the tools, one sub-command each; help and completions, made of their own definitions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "common/settings/settings.hpp"
#include "common/settings/settings_value.hpp"
#include "schema/versions.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

std::string paragraph(std::string text, std::size_t indent = 0) {
  std::ranges::replace(text, '\n', ' ');
  return wrap_text(text, indent);
}

// A name, and what it means beside it; under a name that leaves no room.
std::string entry(const std::string& name, const std::string& meaning, std::size_t column) {
  std::string line = "  " + name;
  if (meaning.empty()) return line + "\n";
  const std::string text = paragraph(meaning, column);
  if (line.size() >= column) return line + "\n" + text;
  line.resize(column, ' ');
  return line + text.substr(column);
}

// Part of a verb's footer between empty lines.
struct FooterPart {
  std::string text;
  bool has_lines = false;  // they stand for themselves: all of a part that has indented ones
};

std::vector<FooterPart> footer_parts(const CLI::App& app) {
  std::vector<FooterPart> parts;
  const std::string footer = app.get_footer();
  for (std::size_t at = 0; at < footer.size();) {
    const std::size_t end = std::min(footer.find("\n\n", at), footer.size());
    const std::string text = footer.substr(at, end - at);
    if (!text.empty()) parts.push_back({text, text.find("\n  ") != std::string::npos});
    at = std::min(end + 2, footer.size());
  }
  return parts;
}

// How --help of `gleaner` and of its verbs is laid out: text runs to 80 columns however the verb
// wrote it down; lines of examples and lists stay as they are.
class HelpFormat : public CLI::Formatter {
 public:
  std::string make_footer(const CLI::App* app) const override {
    std::string text;
    for (const auto& [part, has_lines] : footer_parts(*app)) {
      if (!text.empty()) text += "\n";
      text += has_lines ? part + "\n" : paragraph(part);
    }
    return text;
  }

  std::string make_subcommand(const CLI::App* verb) const override {
    return entry(verb->get_display_name(true), verb->get_description(), column_width_);
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    return entry(make_option_name(option, is_positional) + make_option_opts(option),
                 option->get_description(), column_width_);
  }
};

// A verb, or a verb and the verb within it, as they stand on the command line.
struct Place {
  std::string verbs;               // "", "history", "backup list"
  std::vector<std::string> words;  // verbs that may follow, and flags
};

void collect(const CLI::App& app, const std::string& verbs, std::vector<Place>& places) {
  Place place{verbs, {}};
  const auto inner =
      app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
  for (const CLI::App* verb : inner) place.words.push_back(verb->get_name());
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) place.words.push_back("--" + name);
  }
  places.push_back(std::move(place));
  for (const CLI::App* verb : inner) {
    collect(*verb, verbs.empty() ? verb->get_name() : verbs + " " + verb->get_name(), places);
  }
}

// Words of the place that the line has come to; files where none fits.
std::string bash_script(const std::vector<Place>& places) {
  std::string text =
      "_gleaner() {\n"
      "  local word place=\"\" words\n"
      "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
      "    case \"$place $word\" in\n";
  for (const Place& place : places) {
    if (place.verbs.empty()) continue;
    const bool is_inner = place.verbs.find(' ') != std::string::npos;
    text += fmt::format("      \"{}{}\") place=\"{}\" ;;\n", is_inner ? "" : " ", place.verbs,
                        place.verbs);
  }
  text +=
      "    esac\n"
      "  done\n"
      "  case \"$place\" in\n";
  for (const Place& place : places) {
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", place.verbs, fmt::join(place.words, " "));
  }
  return text +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
         "}\n"
         "complete -o default -F _gleaner gleaner\n";
}

std::string in_quotes(const std::string& text) {
  std::string inner;
  for (const char c : text) inner += c == '\'' ? std::string("\\'") : std::string(1, c);
  return "'" + inner + "'";
}

std::string fish_script(const std::vector<Place>& places) {
  std::string text;
  for (const Place& place : places) {
    std::string condition = "__fish_use_subcommand";
    if (!place.verbs.empty()) {
      condition.clear();
      for (std::size_t from = 0; from < place.verbs.size();) {
        const std::size_t to = std::min(place.verbs.find(' ', from), place.verbs.size());
        condition += fmt::format("{}__fish_seen_subcommand_from {}", from == 0 ? "" : "; and ",
                                 place.verbs.substr(from, to - from));
        from = to + 1;
      }
    }
    for (const std::string& word : place.words) {
      text += fmt::format("complete -c gleaner -n {} {} {}\n", in_quotes(condition),
                          word.starts_with("--") ? "-l" : "-a",
                          word.starts_with("--") ? word.substr(2) : word);
    }
  }
  return text;
}

// The script for "bash", "zsh" or "fish"; zsh reads bash's through bashcompinit.
std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<Place> places;
  collect(app, "", places);
  if (shell == "fish") return fish_script(places);
  const std::string bash = bash_script(places);
  return shell == "zsh" ? "#compdef gleaner\nautoload -U +X bashcompinit && bashcompinit\n" + bash
                        : bash;
}

}  // namespace

void add_completion_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("completion", "print what a shell needs to complete words");
  auto shell = std::make_shared<std::string>();
  verb.add_option("shell", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  verb.footer(
      "`cmake --install` puts the three scripts where the shells look for them.\n\n"
      "Examples:\n"
      "  eval \"$(gleaner completion bash)\"\n"
      "  gleaner completion fish > ~/.config/fish/completions/gleaner.fish\n\n"
      "Exit status: 0 done, 1 failure of the system, 2 usage.");
  verb.callback([&app, shell, &exit_status] {
    exit_status = report_on_store(print_out(completion_script(app, *shell)));
  });
}

}  // namespace gleaner

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
  fmt::print(stderr,
             "gleaner: {}{}; `gleaner --help` lists the commands, `gleaner COMMAND --help` "
             "what one takes\n",
             error.what(), meant(app, error.what()));
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
  CLI::App app("Tools for Gleaner: data sets, stores and what is in them.", "gleaner");
  app.set_version_flag("--version", std::string("gleaner ") + gleaner::kBuildVersion);
  app.footer(kFooter);
  app.formatter(std::make_shared<gleaner::HelpFormat>());
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
