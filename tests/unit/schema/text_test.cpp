#include "common/text.hpp"

#include <catch2/catch.hpp>

namespace gleaner {

TEST_CASE("text: characters of every length are printable", "[text]") {
  REQUIRE(is_printable(""));
  REQUIRE(is_printable("plain ~"));
  REQUIRE(is_printable(
      "\xc2\xa0 \xc3\xa9 \xe2\x82\xac \xef\xbf\xbd \xf0\x9f\x8c\xbe \xf4\x8f\xbf\xbf"));
}

TEST_CASE("text: control characters are not printable", "[text]") {
  for (const char* text : {"\n", "\t", "\x1b[0m", "\x7f", "\xc2\x80", "\xc2\x9b", "\xc2\x9f"}) {
    REQUIRE_FALSE(is_printable(text));
  }
  REQUIRE_FALSE(is_printable(std::string_view("\0", 1)));
}

TEST_CASE("text: what is no UTF-8 is not printable", "[text]") {
  const char* const cases[] = {"\x80",
                               "\xc3",
                               "\xc0\xaf",
                               "\xc1\xbf",
                               "\xe0\x9f\xbf",
                               "\xe2\x82",
                               "\xe2\x28\xa1",
                               "\xed\xa0\x80",
                               "\xed\xbf\xbf",
                               "\xf0\x8f\xbf\xbf",
                               "\xf4\x90\x80\x80",
                               "\xf5\x80\x80\x80",
                               "\xff",
                               "\xc3\xc3"};
  for (const char* text : cases) REQUIRE_FALSE(is_printable(text));
}

TEST_CASE("text: making text printable keeps what is and replaces the rest", "[text]") {
  REQUIRE(printable("a\nb\xff\xc3\xa9", 100) == "a?b?\xc3\xa9");
  REQUIRE(is_printable(printable("\xf0\x9f\x8c", 100)));
}

TEST_CASE("text: cutting does not split characters", "[text]") {
  REQUIRE(printable("ab\xc3\xa9z", 3) == "ab");
  REQUIRE(printable("ab\xc3\xa9z", 4) == "ab\xc3\xa9");
  REQUIRE(printable("abc", 0).empty());
}

}  // namespace gleaner
