#include "tools/cli/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "common/settings/roff.hpp"
#include "common/settings/settings.hpp"
#include "schema/versions.hpp"
#include "tools/cli/store_access.hpp"

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

}  // namespace

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

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<HelpFormat>();
}

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

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
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
    text += fmt::format("    \"{}\") words=\"{}\" ;;\n", place.verbs, joined(place.words));
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

}  // namespace

std::string completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<Place> places;
  collect(app, "", places);
  if (shell == "fish") return fish_script(places);
  const std::string bash = bash_script(places);
  return shell == "zsh" ? "#compdef gleaner\nautoload -U +X bashcompinit && bashcompinit\n" + bash
                        : bash;
}

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

namespace {

// A verb's footer; the part that begins with "Examples:" goes on in whole lines.
std::string footer_text(const CLI::App& app) {
  constexpr std::string_view kExamples = "Examples:\n";
  std::string text;
  for (const auto& [part, has_lines] : footer_parts(app)) {
    if (part.starts_with(kExamples)) {
      text += roff_paragraph("Examples:") + roff_lines(part.substr(kExamples.size()));
    } else {
      text += has_lines ? roff_lines(part) : roff_paragraph(part);
    }
  }
  return text;
}

// "--top UINT:INT in [1 - 100]=5": names, and what CLI11 knows of the value.
std::string option_term(const CLI::Option& option) {
  const CLI::Formatter formatter;
  return option.get_name(option.get_positional(), true) + formatter.make_option_opts(&option);
}

std::string options_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    // Every verb has it; the page says so once.
    if (option == app.get_help_ptr() && app.get_parent() != nullptr) continue;
    text += roff_item(option_term(*option), option->get_description());
  }
  return text;
}

// "gleaner dataset split SOURCE [OPTIONS]"
std::string synopsis(const CLI::App& app, const std::string& verbs) {
  std::string text = "gleaner " + verbs;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    std::string name = option->get_name(true);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  return text + " [OPTIONS]";
}

std::vector<const CLI::App*> verbs_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* verb) { return !verb->get_group().empty(); });
}

std::string verbs_text(const CLI::App& app, const std::string& before) {
  std::string text;
  for (const CLI::App* verb : verbs_of(app)) {
    const std::string verbs = before + verb->get_name();
    const bool is_leaf = verbs_of(*verb).empty();
    if (is_leaf || verb->get_footer() != "") {
      text += roff_subsection(is_leaf ? synopsis(*verb, verbs) : "gleaner " + verbs + " VERB") +
              roff_paragraph(verb->get_description()) + footer_text(*verb) + options_text(*verb);
    }
    text += verbs_text(*verb, verbs + " ");
  }
  return text;
}

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string brief = app.get_description();
  if (brief.ends_with('.')) brief.pop_back();
  return roff_title("gleaner", 1, std::string("gleaner ") + kBuildVersion) + roff_section("NAME") +
         "gleaner \\- " + roff(brief) + "\n" + roff_section("SYNOPSIS") +
         ".B gleaner\n.I COMMAND\n[OPTIONS]\n" + roff_section("DESCRIPTION") +
         roff_paragraph(app.get_description()) + footer_text(app) + options_text(app) +
         roff_section("COMMANDS") + verbs_text(app, "") + roff_section("SEE ALSO") +
         roff(
             "gleaner-master(1), gleaner-volunteer(1), gleaner-master.toml(5), "
             "gleaner-volunteer.toml(5)") +
         "\n";
}

void add_man_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("man", "print this program's manual page");
  verb.footer(
      "`cmake --install` puts it where man looks, with those of gleaner-master and "
      "gleaner-volunteer,\nwhich print theirs with --print-man and --print-man-config.\n\n"
      "Examples:\n"
      "  gleaner man | man -l -\n"
      "  gleaner man > gleaner.1\n\n"
      "Exit status: 0 done, 1 failure of the system, 2 usage.");
  verb.callback(
      [&app, &exit_status] { exit_status = report_on_store(print_out(manual_page(app))); });
}

}  // namespace gleaner
