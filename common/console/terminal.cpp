#include "common/console/terminal.hpp"

#include <algorithm>
#include <cstdlib>

#include "common/os/process.hpp"

namespace gleaner {
namespace {

bool is_continuation(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Bytes of the well-formed, printable code point at the front of `text`; 0 if there is none.
std::size_t printable_prefix(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7F ? 1 : 0;
  const std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i) {
    if (!is_continuation(text[i])) return 0;
  }
  const bool is_c1_control = first == 0xC2 && byte(1) < 0xA0;
  const bool is_overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool is_no_scalar = (first == 0xED && byte(1) >= 0xA0) || (first == 0xF4 && byte(1) > 0x8F);
  // U+2028-202E and U+2066-2069 break lines or change the writing direction.
  const bool turns = first == 0xE2 && ((byte(1) == 0x80 && byte(2) >= 0xA8 && byte(2) <= 0xAE) ||
                                       (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9));
  return is_c1_control || is_overlong || is_no_scalar || turns ? 0 : size;
}

// The character at the front of well-formed text.
struct Character {
  explicit Character(std::string_view text) {
    const auto first = static_cast<unsigned char>(text[0]);
    char32_t point = first < 0x80 ? first
                                  : first & (first >= 0xF0   ? 7u
                                             : first >= 0xE0 ? 15u
                                                             : 31u);
    for (; bytes < text.size() && is_continuation(text[bytes]); ++bytes) {
      point = point << 6 | (static_cast<unsigned char>(text[bytes]) & 63u);
    }
    columns = os::columns_of(point);
  }

  std::size_t bytes = 1;
  unsigned columns = 1;
};

const char* colour_code(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kBold:
      return "1";
    case Colour::kDim:
      return "2";
    case Colour::kRed:
      return "31";
    case Colour::kGreen:
      return "32";
    case Colour::kYellow:
      return "33";
    case Colour::kCyan:
      return "36";
  }
  return "";
}

}  // namespace

TerminalFacts terminal_facts(bool is_terminal, const TerminalEnvironment& env) {
  TerminalFacts facts;
  // Without cursor movement a line cannot be updated in place.
  facts.is_terminal = is_terminal && env.term != "dumb" && !env.term.empty();
  facts.style.colour = facts.is_terminal && env.no_color.empty();
  std::string locale = env.locale;
  std::transform(locale.begin(), locale.end(), locale.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  facts.style.utf8 =
      locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  return facts;
}

TerminalFacts terminal_facts(std::FILE* stream) {
  // Documented to be called before threads start.
  const char* no_color = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe)
  return terminal_facts(
      os::is_terminal(stream),
      {os::terminal_kind(), no_color == nullptr ? "" : no_color, os::locale_name()});
}

unsigned terminal_width(std::FILE* stream) {
  constexpr unsigned kUsual = 80;
  const unsigned columns = os::terminal_columns(stream);
  return columns == 0 ? kUsual : columns;
}

std::string coloured(std::string_view text, Colour colour, TextStyle style) {
  if (!style.colour || colour == Colour::kNone || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", colour_code(colour), text);
}

std::size_t display_width(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Character next(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string fit(std::string_view text, std::size_t width, TextStyle style) {
  if (display_width(text) <= width) return std::string(text);
  const std::string_view ellipsis = style.utf8 ? "\u2026" : "...";
  const std::size_t ellipsis_width = display_width(ellipsis);
  const bool has_room = width > ellipsis_width;
  std::size_t kept = has_room ? width - ellipsis_width : width;
  std::size_t end = 0;
  for (; end < text.size();) {
    const Character next(text.substr(end));
    if (next.columns > kept) break;
    kept -= next.columns;
    end += next.bytes;
  }
  return std::string(text.substr(0, end)) + std::string(has_room ? ellipsis : std::string_view());
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t size = printable_prefix(text);
    if (size == 0) {
      result += '?';
      text.remove_prefix(1);
      // A single '?' replaces a whole broken or refused sequence.
      while (!text.empty() && is_continuation(text.front())) text.remove_prefix(1);
    } else {
      result += text.substr(0, size);
      text.remove_prefix(size);
    }
  }
  return result;
}

std::string grouped(std::uint64_t value) {
  std::string digits = std::to_string(value);
  for (std::size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, 1, ',');
  }
  return digits;
}

std::string bytes_shown(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  // 1023.95 would be shown as 1024.0.
  while (value >= 1023.95 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string duration_shown(std::uint64_t seconds) {
  const std::uint64_t days = seconds / 86'400;
  const std::uint64_t hours = seconds / 3600 % 24;
  const std::uint64_t minutes = seconds / 60 % 60;
  if (days > 0) return fmt::format("{} d {:02}:{:02}", days, hours, minutes);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60);
  return fmt::format("{}:{:02}", minutes, seconds % 60);
}

std::string ranges_shown(const std::vector<std::uint32_t>& numbers) {
  std::string text;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (last < i + 2) last = i;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

void TerminalLine::update(const std::string& text) {
  if (text == shown_) return;
  shown_ = text;
  std::fprintf(stream_, "\r%s\x1b[K", text.c_str());
  std::fflush(stream_);
}

void TerminalLine::print(const std::string& text) {
  std::fprintf(stream_, "%s%s\n", shown_.empty() ? "" : "\r\x1b[K", text.c_str());
  std::fputs(shown_.c_str(), stream_);
  std::fflush(stream_);
}

void TerminalLine::clear() {
  if (shown_.empty()) return;
  shown_.clear();
  std::fputs("\r\x1b[K", stream_);
  std::fflush(stream_);
}

void TerminalLine::end() {
  if (shown_.empty()) return;
  shown_.clear();
  std::fputs("\n", stream_);
  std::fflush(stream_);
}

}  // namespace gleaner
