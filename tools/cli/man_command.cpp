#include "tools/cli/man_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/settings/roff.hpp"
#include "schema/versions.hpp"
#include "tools/cli/help_format.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {
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
  return app.get_subcommands([](const CLI::App*) { return true; });
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
