#include "common/settings/roff.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace gleaner {
namespace {

// One code point of UTF-8 at `at`, which moves behind it; of broken text the byte.
std::uint32_t code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::uint32_t first = byte(at++);
  const std::size_t more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
  std::uint32_t code = more == 0 ? first : first & (0x3FU >> more);
  for (std::size_t i = 0; i < more && at < text.size(); ++i)
    code = code << 6 | (byte(at++) & 0x3FU);
  return code;
}

// A macro's argument may hold blanks when it stands in quotes; quotes in it are doubled.
std::string quoted(std::string_view text) {
  std::string inner;
  for (const char c : roff(text)) inner += c == '"' ? std::string("\"\"") : std::string(1, c);
  return "\"" + inner + "\"";
}

std::string with_end(std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace

std::string roff(std::string_view text) {
  std::string result;
  bool begins_line = true;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (begins_line && (c == '.' || c == '\'')) result += "\\&";
    begins_line = c == '\n';
    if (static_cast<unsigned char>(c) >= 0x80) {
      result += fmt::format("\\[u{:04X}]", code_point(text, at));
      continue;
    }
    ++at;
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string roff_title(std::string_view name, int section, std::string_view program) {
  std::string upper(name);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return fmt::format(".TH {} {} \"\" {} {}\n.nh\n.ad l\n", quoted(upper), section, quoted(program),
                     section == 5 ? "\"File Formats\"" : "\"User Commands\"");
}

std::string roff_section(std::string_view title) {
  return fmt::format(".SH {}\n", quoted(title));
}

std::string roff_subsection(std::string_view title) {
  return fmt::format(".SS {}\n", quoted(title));
}

std::string roff_paragraph(std::string_view text) {
  return ".PP\n" + with_end(roff(text));
}

std::string roff_lines(std::string_view lines) {
  return ".PP\n.nf\n" + with_end(roff(lines)) + ".fi\n";
}

std::string roff_item(std::string_view term, std::string_view meaning) {
  std::string breakable;  // a list without blanks may be wider than a line
  for (const char c : quoted(term)) breakable += c == ',' ? std::string(",\\:") : std::string(1, c);
  return fmt::format(".TP\n.B {}\n{}", breakable, with_end(roff(meaning)));
}

}  // namespace gleaner
