// Text for people: what the terminal can show, text that fits it, and a last line that is updated
// in place below permanent lines. Only TerminalLine writes to a stream; the rest is pure. One
// thread at a time.
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
  bool colour = false;  // ANSI escapes are allowed
  bool utf8 = false;    // non-ASCII characters are allowed
};

// Facts about a stream's terminal.
struct TerminalFacts {
  bool is_terminal = false;
  TextStyle style;
};

// The relevant environment variables, as a parameter for tests; empty if unset.
struct TerminalEnvironment {
  std::string term;      // TERM
  std::string no_color;  // NO_COLOR
  std::string locale;    // the first of LC_ALL, LC_CTYPE and LANG that is set
};

// Colours need a terminal that is not "dumb" and no NO_COLOR; UTF-8 needs a UTF-8 locale.
TerminalFacts terminal_facts(bool is_terminal, const TerminalEnvironment& environment);
// Asks the system. Call at start-up, before other threads run.
TerminalFacts terminal_facts(std::FILE* stream);
// Present number of columns of the stream's terminal; 80 if unknown.
unsigned terminal_width(std::FILE* stream);

enum class Colour : std::uint8_t { kNone, kBold, kDim, kRed, kGreen, kYellow, kCyan };

// `text` in the colour if the style has colours.
std::string coloured(std::string_view text, Colour colour, TextStyle style);
// Columns of text without escapes, as a terminal counts them.
std::size_t display_width(std::string_view text);
// At most `width` columns of text without escapes; a shortened text ends in an ellipsis.
std::string fit(std::string_view text, std::size_t width, TextStyle style);
// Replaces control characters and broken UTF-8 by '?', so that text from a peer cannot move the
// cursor.
std::string printable(std::string_view text);

// "1,234,567".
std::string grouped(std::uint64_t value);
// "1.5 GiB".
std::string bytes_shown(std::uint64_t bytes);
// An elapsed time: "0:42", "12:05", "3:12:45", "2 d 03:12".
std::string duration_shown(std::uint64_t seconds);
// "0-3, 7, 12": ascending numbers, with runs of three or more shortened.
std::string ranges_shown(const std::vector<std::uint32_t>& numbers);

// A line at the bottom that is rewritten in place; permanent lines appear above it.
class TerminalLine {
 public:
  // `stream` outlives this object.
  explicit TerminalLine(std::FILE* stream) : stream_(stream) {}

  ~TerminalLine() { end(); }

  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  // Shows `text` as the last line. It must fit the width.
  void update(const std::string& text);
  // Prints a permanent line above the last line.
  void print(const std::string& text);
  // Removes the last line until the next update.
  void clear();
  // Keeps the last line and moves below it.
  void end();

 private:
  std::FILE* stream_;
  std::string shown_;
};

// A number from 0 to `last` in a command line. The error calls it `what`.
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
