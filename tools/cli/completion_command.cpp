// `gleaner completion`: what a shell needs to complete words, made of the verbs' own definitions.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

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
