#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "common/settings/settings.hpp"
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

std::shared_ptr<CLI::FormatterBase> help_format() {
  return std::make_shared<HelpFormat>();
}

}  // namespace gleaner
