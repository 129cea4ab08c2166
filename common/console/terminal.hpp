// Text for people: what the terminal can show, text that fits it, and a last line that is updated
// in place below the lines that stay. The pure part knows no stream; TerminalLine writes to one.
// One thread at a time.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

struct TextStyle {
  bool colour = false;  // ANSI escapes may be used
  bool utf8 = false;    // more than ASCII may be used
};

// Facts about where a stream leads.
struct TerminalFacts {
  bool is_terminal = false;
  TextStyle style;
};

// The environment's part in it, so that it can be tested; empty where unset.
struct TerminalEnvironment {
  std::string term;      // TERM
  std::string no_color;  // NO_COLOR
  std::string locale;    // the first of LC_ALL, LC_CTYPE and LANG that is set
};

// Colours need a terminal that is not "dumb" and no NO_COLOR; UTF-8 needs a locale that says so.
TerminalFacts terminal_facts(bool is_terminal, const TerminalEnvironment& environment);
// Asks the system. Call at start-up, before other threads run.
TerminalFacts terminal_facts(std::FILE* stream);
// Columns of the terminal behind the stream as they are now; 80 when they cannot be told.
unsigned terminal_width(std::FILE* stream);

enum class Colour : std::uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// `text` in the colour, when the style has colours.
std::string coloured(std::string_view text, Colour colour, TextStyle style);
// Columns of text without escapes: one a code point.
std::size_t display_width(std::string_view text);
// At most `width` columns of text without escapes; ends in an ellipsis when cut.
std::string fit(std::string_view text, std::size_t width, TextStyle style);
// Text from elsewhere made harmless: control characters and broken UTF-8 become '?'. What a peer
// calls itself must not move the cursor.
std::string printable(std::string_view text);

// "1,234,567".
std::string grouped(std::uint64_t value);
// "1.5 GiB".
std::string bytes_shown(std::uint64_t bytes);
// A clock that counts up: "0:42", "12:05", "3:12:45", "2 d 03:12".
std::string duration_shown(std::uint64_t seconds);
// "0-3, 7, 12": ascending numbers, runs of three or more shortened.
std::string ranges_shown(const std::vector<std::uint32_t>& numbers);

// A line at the bottom that is rewritten in place; other lines appear above it.
class TerminalLine {
 public:
  // `stream` outlives this.
  explicit TerminalLine(std::FILE* stream) : stream_(stream) {}

  ~TerminalLine() { end(); }

  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  // Shows `text`, which fits the width, as the last line.
  void update(const std::string& text);
  // Prints a line that stays, above the last line.
  void print(const std::string& text);
  // Takes the last line away, until the next update.
  void clear();
  // Leaves the last line standing and moves below it.
  void end();

 private:
  std::FILE* stream_;
  std::string shown_;
};

// Numbers that a person gives as words of the command line.

// 0 to `last`; the error says of `what`.
inline Result<std::uint32_t> parse_number(const char* what, const std::string& text,
                                          std::uint64_t last) {
  std::uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc() && parsed.ptr == end && number <= last) return number;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the run has no {} '{}': name one of 0 to {}", what, printable(text), last)};
}

}  // namespace gleaner
