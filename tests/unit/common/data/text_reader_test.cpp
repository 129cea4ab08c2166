#include "common/data/text_reader.hpp"

#include <limits>
#include <vector>

#include "tests/support/memory_source.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

struct Parsed {
  std::vector<Point> points;
  TextFormat format = TextFormat::kAuto;
  Dimensions used;
  Irregularities irregularities;
};

Result<Parsed> parse(std::string_view text, const TextOptions& options = {}) {
  Result<std::unique_ptr<ByteSource>> source = open_memory_source("f", text);
  if (!source) return source.error();
  Result<std::unique_ptr<TextReader>> reader = TextReader::open(std::move(*source), options);
  if (!reader) return reader.error();
  Parsed parsed;
  for (;;) {
    Point point;
    Result<bool> has_point = (*reader)->next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    parsed.points.push_back(std::move(point));
  }
  parsed.format = (*reader)->format();
  parsed.used = (*reader)->used();
  parsed.irregularities = (*reader)->irregularities();
  return parsed;
}

// The outcome of a set of one or two points under the header "N 10 5".
std::string refusal(const std::string& lines, int points = 1) {
  return message_of(parse(std::to_string(points) + " 10 5\n" + lines));
}

Point only_point(const std::string& line) {
  Result<Parsed> parsed = parse("1 10 5\n" + line);
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed.ok());
  REQUIRE(parsed->points.size() == 1);
  return parsed->points[0];
}

const Point kPlain{{1, 3}, {0, 7}, {0.5F, -2.0F}};

}  // namespace

TEST_CASE("text: an XC file is recognised by its header and read", "[text_reader]") {
  const auto parsed = parse("3 10 5\n1,3 0:0.5 7:-2\n 9:1e-3\n4\n");
  REQUIRE(parsed.ok());
  CHECK(parsed->format == TextFormat::kXc);
  CHECK(parsed->points == std::vector<Point>{kPlain, {{}, {9}, {0.001F}}, {{4}, {}, {}}});
  CHECK(parsed->used == Dimensions{10, 5});
  CHECK(parsed->irregularities == Irregularities{});
}

TEST_CASE("text: a libsvm file is recognised, its first feature is 1", "[text_reader]") {
  const auto parsed = parse("1,3 1:0.5 8:-2\n 10:1\n2\n");
  REQUIRE(parsed.ok());
  CHECK(parsed->format == TextFormat::kLibsvm);
  CHECK(parsed->points == std::vector<Point>{kPlain, {{}, {9}, {1.0F}}, {{2}, {}, {}}});
  CHECK(parsed->used == Dimensions{10, 4});
}

TEST_CASE("text: a first line that is no header and no example for sure is refused",
          "[text_reader]") {
  for (const char* line : {"200000", "1,2", "200000 ", "7\r"}) {
    INFO(line);
    CHECK_THAT(
        message_of(parse(std::string(line) + "\n1 1:2\n")),
        Catch::StartsWith("f:1:1: expected the header 'points features labels' or an example "
                          "with a feature ('labels feature:value'), found '"));
  }
  for (const char* head : {"#1 10 5\n", "# 1 10 5\n", "# made by hand\n1 10 5\n"}) {
    INFO(head);
    CHECK_THAT(message_of(parse(std::string(head) + "1 1:2\n")),
               Catch::Contains("'#'") && Catch::Contains("header 'points features labels'"));
  }
  TextOptions libsvm;
  libsvm.format = TextFormat::kLibsvm;
  CHECK(parse("200000\n1 1:2\n", libsvm)->points.size() == 2);
  CHECK(parse(" \n1 1:2\n")->points.size() == 2);
  CHECK(parse("1 1:2\n200000\n")->points.size() == 2);
}

TEST_CASE("text: libsvm's first feature may be 0 by option, never by guessing", "[text_reader]") {
  CHECK(message_of(parse("1 0:0.5 8:-2\n")) ==
        "f:1:3: expected a feature id from 1 to 1000000000 (Gleaner's limit), found '0:0.5'");
  TextOptions zero;
  zero.libsvm_first_feature = 0;
  CHECK(parse("1,3 0:0.5 7:-2\n", zero)->points == std::vector<Point>{kPlain});
}

TEST_CASE("text: libsvm comments are skipped, alone or behind a point", "[text_reader]") {
  CHECK(parse("# made by hand\n1,3 1:0.5 8:-2 # first\n#\n")->points == std::vector<Point>{kPlain});
}

TEST_CASE("text: the form can be forced", "[text_reader]") {
  TextOptions xc;
  xc.format = TextFormat::kXc;
  CHECK(message_of(parse("1 1:2\n", xc)) ==
        "f:1:3: expected the number of features (1 to 1000000000) of the header 'points features "
        "labels', found '1:2'");
  TextOptions libsvm;
  libsvm.format = TextFormat::kLibsvm;
  CHECK(message_of(parse("3 10 5\n", libsvm)) ==
        "f:1:5: expected ':' and a value after the feature id, found a blank");
}

TEST_CASE("text: line ends, blanks and tabs do not change what is read", "[text_reader]") {
  for (const char* text :
       {"1 10 5\r\n1,3 0:0.5 7:-2\r\n", "1 10 5\n1,3 0:0.5 7:-2", "1 10 5\r\n1,3 0:0.5 7:-2\r",
        "1\t10\t5\n1,3\t0:0.5\t7:-2\n", " 1  10 5  \n1,3   0:0.5 \t 7:-2  \n",
        "1 10 5\n1,3 0:0.5 7:-2\n\n\r\n\n",
        "\xef\xbb\xbf"
        "1 10 5\n1,3 0:0.5 7:-2\n",
        "1 10 5\n3,1 7:-2 0:0.5\n", "1 10 5\n1,3,1 0:0.5 4:0 7:-2 9:-0.0\n",
        "1 10 5\n001,3 00:.5 7:-2e0\n"}) {
    const auto parsed = parse(text);
    INFO(text);
    REQUIRE(parsed.ok());
    CHECK(parsed->points == std::vector<Point>{kPlain});
  }
}

TEST_CASE("text: points without labels or without anything are points", "[text_reader]") {
  CHECK(only_point(" 0:1") == Point{{}, {0}, {1.0F}});
  CHECK(only_point("\t0:1") == Point{{}, {0}, {1.0F}});
  CHECK(only_point(" ") == Point{});
  CHECK(only_point(" \r\n") == Point{});
  CHECK(only_point("2") == Point{{2}, {}, {}});
}

TEST_CASE("text: irregularities that are put right are counted", "[text_reader]") {
  const auto parsed = parse("3 10 5\n3,1,1 7:-2 0:0.5\n1,1 1:0 2:1e-60\n4 3:1 2:1 1:0\n");
  REQUIRE(parsed.ok());
  CHECK(parsed->irregularities == Irregularities{2, 2, 3});
  CHECK(parsed->points[1] == Point{{1}, {}, {}});
  CHECK(parsed->points[2] == Point{{4}, {2, 3}, {1.0F, 1.0F}});
}

TEST_CASE("text: an empty file is refused", "[text_reader]") {
  CHECK(message_of(parse("")) ==
        "f:1:1: expected a data set in XC or libsvm text form, found an empty file");
  CHECK(message_of(parse("\n\n")) ==
        "f:3:1: expected 1 examples or more, found the end of the file after 0");
  CHECK(message_of(parse("# nothing\n")) ==
        "f:2:1: expected 1 examples or more, found the end of the file after 0");
}

TEST_CASE("text: a header that cannot be is refused", "[text_reader]") {
  CHECK(message_of(parse("3 10\n")) ==
        "f:1:5: expected the number of labels (1 to 100000000) of the header 'points features "
        "labels', found the end of the line");
  CHECK(message_of(parse("3 10 5 1\n")) ==
        "f:1:8: expected the end of the header 'points features labels', found '1'");
  CHECK(message_of(parse("0 10 5\n")) ==
        "f:1:1: expected the number of examples (1 to 281474976710656) of the header 'points "
        "features labels', found '0'");
  CHECK_THAT(message_of(parse("3 -1 5\n")), Catch::StartsWith("f:1:3: expected the number of f"));
  CHECK_THAT(message_of(parse("3 10 100000001\n")), Catch::StartsWith("f:1:6: expected"));
  CHECK_THAT(message_of(parse("3 10 99999999999999999999999\n")),
             Catch::StartsWith("f:1:6: expected"));
  CHECK_THAT(message_of(parse("three 10 5\n")), Catch::StartsWith("f:1:1: expected"));
}

TEST_CASE("text: a number of points other than the header's is refused", "[text_reader]") {
  CHECK(message_of(parse("3 10 5\n")) ==
        "f:2:1: expected 3 examples as the header announces, found the end of the file after 0");
  CHECK(refusal("1 1:1\n", 2) ==
        "f:3:1: expected 2 examples as the header announces, found the end of the file after 1");
  CHECK(refusal("1 1:1\n2 1:1\n") ==
        "f:3:1: expected the end of the file after the 1 examples that the header announces, found "
        "'2'");
}

TEST_CASE("text: an empty line among points is refused where it stands", "[text_reader]") {
  const std::string expected =
      "f:3:1: expected an example, found an empty line (an example without labels and features is "
      "a "
      "single blank)";
  CHECK(refusal("1 1:1\n\n2 1:1\n", 2) == expected);
  CHECK(refusal("1 1:1\r\n\r\n\r\n2 1:1\n", 2) == expected);
}

TEST_CASE("text: a feature given twice is refused at its second place", "[text_reader]") {
  CHECK(refusal("1 2:1 3:1 2:5") == "f:2:11: expected every feature once, found feature 2 twice");
  CHECK(refusal("2 2:1 02:1") == "f:2:7: expected every feature once, found feature 2 twice");
  CHECK(refusal("2 2:0 3:1 2:0") == "f:2:11: expected every feature once, found feature 2 twice");
  CHECK(message_of(parse("2 2:1 2:1\n")) ==
        "f:1:7: expected every feature once, found feature 2 twice");
}

TEST_CASE("text: ids out of range are refused with the range", "[text_reader]") {
  CHECK(refusal("1 9:1 10:1") ==
        "f:2:7: expected a feature id from 0 to 9 (the header announces 10 features), found "
        "'10:1'");
  CHECK(refusal("1,5 9:1") ==
        "f:2:3: expected a label id from 0 to 4 (the header announces 5 labels), found '5'");
  CHECK_THAT(refusal("-1 9:1"), Catch::StartsWith("f:2:1: expected a label id from 0 to 4"));
  CHECK_THAT(refusal("1 -9:1"), Catch::StartsWith("f:2:3: expected a feature id from 0 to 9"));
  CHECK_THAT(refusal("1 99999999999999999999999999:1"),
             Catch::EndsWith("found '999999999999999999999999...'"));
  CHECK_THAT(message_of(parse("100000000 1:1\n")), Catch::StartsWith("f:1:1: expected a label"));
  CHECK_THAT(message_of(parse("1 1000000001:1\n")), Catch::StartsWith("f:1:3: expected a feat"));
  CHECK(parse("99999999 1000000000:1\n")->used == Dimensions{1'000'000'000, 100'000'000});
}

TEST_CASE("text: ids beyond given limits are refused in the limits' name", "[text_reader]") {
  TextOptions options;
  options.limits = Dimensions{8, 4};
  CHECK(message_of(parse("1 10 5\n1 8:1\n", options)) ==
        "f:2:3: expected a feature id from 0 to 7 (the training set has 8 features), found '8:1'");
  CHECK(message_of(parse("4 1:1\n", options)) ==
        "f:1:1: expected a label id from 0 to 3 (the training set has 4 labels), found '4'");
  CHECK(parse("1 10 5\n3 7:1\n", options).ok());
  CHECK_THAT(message_of(parse("1 6 3\n1 7:1\n", options)),
             Catch::Contains("(the header announces 6 features)"));
}

TEST_CASE("text: values that are no finite floats are refused", "[text_reader]") {
  const std::string finite = "expected a finite number that fits a 32-bit float, found ";
  for (const char* value : {"nan", "NaN", "inf", "-inf", "infinity", "1e39", "-1e39", "1e400"}) {
    CHECK(refusal(std::string("1 2:") + value) == "f:2:5: " + finite + "'" + value + "'");
  }
  for (const char* value : {"x", "+1", "--1", "-"}) {
    CHECK(refusal(std::string("1 2:") + value) ==
          "f:2:5: expected a number, found '" + std::string(value) + "'");
  }
  CHECK(refusal("1 2:") == "f:2:5: expected a number, found the end of the line");
  CHECK(refusal("1 2: 3:1") == "f:2:5: expected a number, found a blank");
  CHECK(refusal("1 2:1,5") == "f:2:6: expected a blank after the value, found ',5'");
  CHECK(refusal("1 2:1:5") == "f:2:6: expected a blank after the value, found ':5'");
  CHECK(refusal("1 2:0x10") == "f:2:6: expected a blank after the value, found 'x10'");
  CHECK(only_point("1 2:3.4028234e38").values[0] == std::numeric_limits<float>::max());
  CHECK(only_point("1 2:1e-45").values[0] == std::numeric_limits<float>::denorm_min());
  CHECK(only_point("1 2:0.3333333333333333333333333333333333333333333").values[0] == 1.0F / 3);
}

TEST_CASE("text: malformed lists are refused at the byte in question", "[text_reader]") {
  CHECK_THAT(refusal("1, 2:1"), Catch::StartsWith("f:2:3: expected a label id"));
  CHECK_THAT(refusal(",1 2:1"), Catch::StartsWith("f:2:1: expected a label id"));
  CHECK_THAT(refusal("1,,2 2:1"), Catch::StartsWith("f:2:3: expected a label id"));
  CHECK(refusal("1;2 2:1") == "f:2:2: expected ',' or a blank after the label, found ';2'");
  CHECK(refusal("1.0 2:1") == "f:2:2: expected ',' or a blank after the label, found '.0'");
  CHECK(refusal("1 2 3:1") ==
        "f:2:4: expected ':' and a value after the feature id, found a blank");
  CHECK(refusal("1 2") ==
        "f:2:4: expected ':' and a value after the feature id, found the end of the line");
  CHECK(refusal("1 x:1") ==
        "f:2:3: expected a feature id from 0 to 9 (the header announces 10 features), found "
        "'x:1'");
  CHECK(refusal("2:1 3:1") ==
        "f:2:1: expected a label list or, for an example without labels, a blank at the line's "
        "start, found '2:1'");
  CHECK_THAT(refusal(std::string("1 \0\x7f\xff:1", 7)),
             Catch::EndsWith("found '\\x00\\x7f\\xff:1'"));
  CHECK_THAT(refusal("1 2:1\r\r"), Catch::StartsWith("f:2:6: expected a blank after the value"));
}

TEST_CASE("text: a file that is not text is refused without being read whole", "[text_reader]") {
  for (const std::size_t bytes : {kLineBytesMax, kLineBytesMax * 2 + 3}) {
    CHECK_THAT(message_of(parse(std::string(bytes, '1'))),
               Catch::StartsWith("f:1:1: expected a line of fewer than 67108864 bytes"));
  }
}

TEST_CASE("text: damaged compression below a line is reported, not taken for the end",
          "[text_reader]") {
  const std::string whole = gzip("1 10 5\n1 1:1\n");
  CHECK_THAT(message_of(parse(std::string_view(whole).substr(0, whole.size() - 9))),
             Catch::StartsWith("f: damaged gzip data"));
}

TEST_CASE("text: whoever takes the problems gets every one, and the points between them",
          "[text_reader]") {
  std::vector<std::string> problems;
  TextOptions options;
  options.on_problem = [&](const TextProblem& problem) {
    problems.push_back(std::to_string(problem.line) + ":" + std::to_string(problem.column));
    CHECK_THAT(problem.text, Catch::StartsWith("expected "));
  };
  const auto parsed =
      parse("5 10 5\n9 1:1\n1,3 0:0.5 7:-2\n\n\n1 x:1\n1 2:1\n1 1:1 1:1\n", options);
  REQUIRE(parsed.ok());
  CHECK(parsed->points.size() == 2);
  CHECK(parsed->points[0] == kPlain);
  // Bad lines count among the announced points.
  CHECK(problems == std::vector<std::string>{"2:1", "4:1", "6:3", "8:7"});
  problems.clear();
  CHECK(parse("", options)->points.empty());
  CHECK(problems == std::vector<std::string>{"1:1"});
  problems.clear();
  CHECK(parse("3 10 5\n1 1:1\n", options)->points.size() == 1);
  CHECK(problems == std::vector<std::string>{"3:1"});
  problems.clear();
  CHECK(parse("1 10 5\n1 1:1\n1 2:1\n1 3:1\n", options)->points.size() == 3);
  CHECK(problems == std::vector<std::string>{"3:1"});
}

}  // namespace gleaner
