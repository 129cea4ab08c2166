#include "common/settings/roff.hpp"

#include <catch2/catch.hpp>

namespace gleaner {

TEST_CASE("roff: nothing in a text means anything to the formatter", "[roff]") {
  CHECK(roff("--top N: 'a' \\n `b` ^~") == "\\-\\-top N: \\(aqa\\(aq \\en \\(gab\\(ga \\(ha\\(ti");
  CHECK(roff(".SH x\n'br\na.b") == "\\&.SH x\n\\&\\(aqbr\na.b");
  CHECK(roff("a \xe2\x9c\x93 \xc3\xa9") == "a \\[u2713] \\[u00E9]");
  CHECK(roff_section("a \"b\"") == ".SH \"a \"\"b\"\"\"\n");
  CHECK(roff_item("-h", "Help.") == ".TP\n.B \"\\-h\"\nHelp.\n");
  CHECK(roff_item("{a,b}", "One.") == ".TP\n.B \"{a,\\:b}\"\nOne.\n");
  CHECK(roff_lines("  a\n  b") == ".PP\n.nf\n  a\n  b\n.fi\n");
  CHECK(roff_title("gleaner.toml", 5, "gleaner 1") ==
        ".TH \"GLEANER.TOML\" 5 \"\" \"gleaner 1\" \"File Formats\"\n.nh\n.ad l\n");
}

}  // namespace gleaner
