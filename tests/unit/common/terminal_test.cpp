#include "common/console/terminal.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"
#include "tests/support/captured_stream.hpp"

namespace gleaner {
namespace {

constexpr TextStyle kPlain{};
constexpr TextStyle kRich{true, true};

}  // namespace

TEST_CASE("terminal: colours need a real terminal and no NO_COLOR", "[terminal]") {
  const TerminalFacts full = terminal_facts(true, {"xterm", "", "en_US.UTF-8"});
  REQUIRE(full.is_terminal);
  REQUIRE(full.style.colour);
  REQUIRE(full.style.utf8);
  REQUIRE_FALSE(terminal_facts(true, {"xterm", "1", "C.utf8"}).style.colour);
  REQUIRE(terminal_facts(true, {"xterm", "1", "C.utf8"}).is_terminal);
  REQUIRE_FALSE(terminal_facts(true, {"dumb", "", "C"}).is_terminal);
  REQUIRE_FALSE(terminal_facts(true, {"", "", "C"}).is_terminal);
  REQUIRE_FALSE(terminal_facts(false, {"xterm", "", "C"}).is_terminal);
  REQUIRE_FALSE(terminal_facts(false, {"xterm", "", "C"}).style.colour);
  REQUIRE_FALSE(terminal_facts(true, {"xterm", "", "C"}).style.utf8);
}

TEST_CASE("terminal: text is cut at the width, between code points", "[terminal]") {
  REQUIRE(fit("abcdef", 6, kPlain) == "abcdef");
  REQUIRE(fit("abcdef", 5, kPlain) == "ab...");
  REQUIRE(fit("abcdef", 5, kRich) == "abcd…");
  REQUIRE(fit("äöüß", 4, kPlain) == "äöüß");
  REQUIRE(fit("äöüßx", 4, kRich) == "äöü…");
  REQUIRE(fit("abcdef", 3, kPlain) == "abc");
  REQUIRE(fit("abcdef", 0, kPlain).empty());
  for (std::size_t width = 0; width < 20; ++width) {
    for (const TextStyle style : {kPlain, kRich}) {
      REQUIRE(display_width(fit("zwölf Boxkämpfer jagen", width, style)) <= width);
    }
  }
}

TEST_CASE("terminal: what a peer sends cannot move the cursor or break UTF-8", "[terminal]") {
  REQUIRE(printable("plain äöü 日本 😀") == "plain äöü 日本 😀");
  REQUIRE(printable("a\x1b[2Jb\r\n\t\x7f") == "a?[2Jb????");
  REQUIRE(printable("a\xc2\x9b"
                    "31m") == "a?31m");  // C1 control
  REQUIRE(printable("a\xe2\x80\xae"
                    "b") == "a?b");  // turns the direction of writing
  REQUIRE(printable("a\xc0\xaf"
                    "b") == "a?b");  // overlong
  REQUIRE(printable("a\xed\xa0\x80"
                    "b") == "a?b");  // surrogate
  REQUIRE(printable("a\xf4\x90\x80\x80"
                    "b") == "a?b");              // beyond Unicode
  REQUIRE(printable("a\xff\xe2\x82") == "a??");  // cut short
  REQUIRE(printable("").empty());
}

TEST_CASE("terminal: quantities read well", "[terminal]") {
  REQUIRE(grouped(0) == "0");
  REQUIRE(grouped(999) == "999");
  REQUIRE(grouped(1000) == "1,000");
  REQUIRE(grouped(1234567) == "1,234,567");
  REQUIRE(bytes_shown(1023) == "1023 B");
  REQUIRE(bytes_shown(1024) == "1.0 KiB");
  REQUIRE(bytes_shown((1u << 20) - 1) == "1.0 MiB");
  REQUIRE(bytes_shown(std::uint64_t{3} << 29) == "1.5 GiB");
  REQUIRE(duration_shown(0) == "0:00");
  REQUIRE(duration_shown(3599) == "59:59");
  REQUIRE(duration_shown(3600) == "1:00:00");
  REQUIRE(duration_shown(86'400 * 2 + 3 * 3600 + 720) == "2 d 03:12");
  for (const auto& [seconds, words] :
       {std::pair(0, "0 s"), std::pair(99, "99 s"), std::pair(100, "2 min"),
        std::pair(39 * 60, "39 min"), std::pair(99 * 60 + 29, "99 min"),
        std::pair(99 * 60 + 30, "1 h 40 min"), std::pair(3 * 3600 + 5 * 60, "3 h 05 min"),
        std::pair(13 * 3600 + 25 * 60, "13 h 25 min"), std::pair(48 * 3600, "2 d 0 h")}) {
    REQUIRE(duration_words(static_cast<std::uint64_t>(seconds)) == words);
  }
  REQUIRE(ranges_shown({}).empty());
  REQUIRE(ranges_shown({3, 7, 12}) == "3, 7, 12");
  REQUIRE(ranges_shown({0, 1, 2, 3, 5, 6, 9}) == "0-3, 5, 6, 9");
  REQUIRE(ranges_shown({4, 5, 6}) == "4-6");
}

TEST_CASE("terminal: lines that stay appear above the line that is updated", "[terminal]") {
  CapturedStream captured;
  {
    TerminalLine line(captured.stream());
    line.print("first");
    line.update("10%");
    line.update("10%");
    line.update("20%");
    line.print("second");
    line.clear();
    line.print("third");
    line.update("30%");
  }
  REQUIRE(captured.text() ==
          "first\n\r10%\x1b[K\r20%\x1b[K\r\x1b[Ksecond\n20%\r\x1b[Kthird\n\r30%\x1b[K\n");
}

TEST_CASE("exit codes: every error code has a name and a status", "[exit_code]") {
  std::vector<std::string> names;
  for (std::uint16_t code = 1; code <= 15; ++code) {
    const std::string name = error_name(static_cast<ErrorCode>(code));
    REQUIRE(name != "unknown");
    REQUIRE(std::find(names.begin(), names.end(), name) == names.end());
    names.push_back(name);
  }
  REQUIRE(std::string(error_name(static_cast<ErrorCode>(999))) == "unknown");
  REQUIRE(exit_code_of(ErrorCode::kInvalidArgument) == ExitCode::kUsage);
  REQUIRE(exit_code_of(ErrorCode::kInvalidData) == ExitCode::kData);
  REQUIRE(exit_code_of(ErrorCode::kIdentity) == ExitCode::kStore);
  REQUIRE(exit_code_of(ErrorCode::kInvite) == ExitCode::kNetwork);
  REQUIRE(exit_code_of(ErrorCode::kFinished) == ExitCode::kOk);
  REQUIRE(exit_code_of(ErrorCode::kIo) == ExitCode::kFailure);
}

}  // namespace gleaner
