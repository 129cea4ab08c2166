// The verbs that check, convert, sample and describe data sets.
#include <nlohmann/json.hpp>

#include "common/console/terminal.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/data/point_writer.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/tools/dataset/run_dataset.hpp"
#include "tools/dataset/dataset_command.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using test::read_points;
using test::Run;
using test::run;

constexpr const char* kBroken =
    "7 5 3\n"
    "0 1:1 2:0.5\n"
    "9 1:1\n"
    "1 1:x\n"
    "\n"
    "2 4:1\n"
    "0 1:1 1:2\n"
    "1 0:1 4:nan\n";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

TEST_CASE("dataset info: every bad line is listed with its place", "[dataset_forms]") {
  const TempFolder folder;
  const std::string path = folder.file("broken.txt");
  write_file(path, kBroken);
  const Run found = run(folder, {"info", path});
  CHECK(found.status == 3);
  CHECK(found.err == "gleaner: " + path + " cannot be trained on as it is: 6 things to mend\n");
  const auto lines = lines_of(found.out);
  const std::vector<std::string> begins = {":3:1: expected a label id from 0 to 2",
                                           ":4:5: expected a number, found 'x'",
                                           ":5:1: expected an example, found an empty line",
                                           ":7:7: expected every feature once",
                                           ":8:9: expected a finite number",
                                           ":9:1: expected 7 examples as the header announces"};
  for (std::size_t i = 0; i < begins.size(); ++i) {
    INFO(lines[i]);
    CHECK(lines[i].starts_with(path + begins[i]));
  }
  CHECK_THAT(found.out, Contains("examples                2\n"));

  const Run limited = run(folder, {"info", path, "--limit", "2", "--json"});
  CHECK(limited.status == 3);
  const auto json = nlohmann::json::parse(limited.out);
  CHECK(json["gleaner_json"] == 1);
  CHECK(json["verb"] == "dataset info");
  CHECK(json["is_sound"] == false);
  CHECK(json["problems_count"] == 6);
  CHECK(json["points"] == 2);
  REQUIRE(json["problems"].size() == 2);
  CHECK(json["problems"][1]["line"] == 4);
  CHECK(json["problems"][1]["column"] == 5);
  CHECK(json["problems"][1]["problem"] == "expected a number, found 'x'");
  CHECK_THAT(run(folder, {"info", path, "--limit", "2"}).out, Contains("and 4 more"));
}

TEST_CASE("dataset info: a sound set is, and one with more ids than another is not",
          "[dataset_forms]") {
  const TempFolder folder;
  write_file(folder.file("a.svm"), "0 1:1\n1 3:1\n");
  write_file(folder.file("b.svm"), "0 1:1\n1 4:1\n");
  write_file(folder.file("bad_header.txt"), "5 0 3\n1 9:1\n");
  write_file(folder.file("empty"), "");
  CHECK(run(folder, {"info", folder.file("a.svm")}).status == 0);
  CHECK(run(folder, {"info", folder.file("b.svm")}).status == 0);
  const Run beyond = run(folder, {"info", folder.file("b.svm"), "--like", folder.file("a.svm")});
  CHECK(beyond.status == 3);
  CHECK_THAT(beyond.out, Contains("b.svm:2:3: expected a feature id from 1 to 3"));
  // The lines after a bad header are still read, once.
  const Run header = run(folder, {"info", folder.file("bad_header.txt")});
  CHECK_THAT(header.err, Contains("1 thing to mend"));
  CHECK_THAT(header.out, Contains("bad_header.txt:1:3: expected the number of features"));
  CHECK_THAT(run(folder, {"info", folder.file("empty")}).err, Contains("1 thing to mend"));
  CHECK(run(folder, {"info", folder.file("absent")}).status == 3);
}

TEST_CASE("dataset info: each damaged block of a packed set is listed", "[dataset_forms]") {
  const TempFolder folder;
  std::string text = "5000 9 2\n";
  for (int i = 0; i < 5000; ++i) text += "1 3:0.5 7:0.25\n";
  write_file(folder.file("a.txt"), text);
  const std::string packed = folder.file("a.gleaner");
  REQUIRE(run(folder, {"pack", folder.file("a.txt"), "--output", packed}).status == 0);
  CHECK(run(folder, {"info", packed}).status == 0);
  std::string bytes = read_file(packed);
  bytes[300] = static_cast<char>(bytes[300] ^ 1);
  bytes[240 + 28 * 3000] = static_cast<char>(bytes[240 + 28 * 3000] ^ 1);
  write_file(packed, bytes);
  const Run found = run(folder, {"info", packed, "--json"});
  CHECK(found.status == 3);
  const auto json = nlohmann::json::parse(found.out);
  CHECK(json["problems_count"] == 2);
  CHECK(json["points"] == 5000 - 2 * 1024);
  CHECK(json["problems"][0]["line"].is_null());
}

TEST_CASE("dataset convert: what goes from form to form comes back the same", "[dataset_forms]") {
  const TempFolder folder;
  const std::string xc = folder.file("a.txt");
  REQUIRE(
      run(folder, {"synth", "--train", xc, "--points", "200", "--labels", "40", "--features", "90"})
          .status == 0);
  std::string with_gaps = read_file(xc);
  const auto convert = [&](const std::string& from, const std::string& to,
                           std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"convert", folder.file(from), "--output",
                                          folder.file(to)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Run done = run(folder, arguments);
    INFO(done.err);
    CHECK(done.status == 0);
  };
  convert("a.txt", "b.svm.gz");
  convert("b.svm.gz", "c.txt", {"--like", xc});
  CHECK(read_file(folder.file("c.txt")) == with_gaps);
  // --format is the source's alone.
  convert("b.svm.gz", "j.txt", {"--format", "libsvm", "--like", xc});
  CHECK(read_file(folder.file("j.txt")) == with_gaps);
  CHECK(run(folder, {"info", folder.file("b.svm.gz"), "--format", "libsvm", "--like", xc}).status ==
        0);
  CHECK(run(folder, {"pack", folder.file("b.svm.gz"), "--format", "libsvm", "--like", xc,
                     "--output", folder.file("k.gleaner")})
            .status == 0);
  convert("a.txt", "zero.libsvm", {"--first-feature", "0"});
  convert("zero.libsvm", "d.txt", {"--first-feature", "0", "--like", xc});
  CHECK(read_file(folder.file("d.txt")) == with_gaps);
  convert("a.txt", "e.gleaner", {"--no-normalize"});
  convert("e.gleaner", "f.txt");
  CHECK(read_file(folder.file("f.txt")) == with_gaps);
  // As pack makes it.
  convert("b.svm.gz", "g.gleaner", {"--like", xc});
  REQUIRE(run(folder, {"pack", xc, "--output", folder.file("h.gleaner")}).status == 0);
  CHECK(read_file(folder.file("g.gleaner")) == read_file(folder.file("h.gleaner")));
  const Run twice =
      run(folder, {"convert", folder.file("e.gleaner"), "--output", folder.file("i.gleaner")});
  CHECK(twice.status == 2);
  CHECK_THAT(twice.err, Contains("packed already"));
}

TEST_CASE("dataset split: a sample has exactly N points, in order, a function of the seed",
          "[dataset_forms]") {
  const TempFolder folder;
  const std::string all = folder.file("all.txt");
  REQUIRE(run(folder,
              {"synth", "--train", all, "--points", "500", "--labels", "40", "--features", "90"})
              .status == 0);
  const auto sample = [&](const char* output, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"split", all, "--sample", folder.file(output)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(folder, arguments);
  };
  REQUIRE(sample("a.txt", {"--points", "100"}).status == 0);
  REQUIRE(sample("b.txt", {"--share", "0.2"}).status == 0);
  REQUIRE(sample("c.txt", {"--points", "100", "--seed", "2"}).status == 0);
  const std::vector<Point> whole = read_points(all);
  const std::vector<Point> chosen = read_points(folder.file("a.txt"));
  CHECK(chosen.size() == 100);
  std::size_t at = 0;
  for (const Point& point : whole) at += at < chosen.size() && point == chosen[at];
  CHECK(at == 100);
  CHECK(read_file(folder.file("a.txt")) == read_file(folder.file("b.txt")));
  CHECK(read_file(folder.file("a.txt")) != read_file(folder.file("c.txt")));
  CHECK(read_file(folder.file("a.txt")).starts_with("100 90 40\n"));
  CHECK(sample("d.txt", {"--points", "1", "--share", "0.5"}).status == 2);
  CHECK(sample("d.txt", {"--share", "1.5"}).status == 2);
  CHECK(sample("d.txt", {"--points", "501"}).status == 3);
}

TEST_CASE("dataset split: every point has the same chance in a sample", "[dataset_forms]") {
  std::vector<int> times(20, 0);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    SampleChoice choice(seed, times.size(), 5);
    int chosen = 0;
    for (int& count : times) {
      const bool is_chosen = choice.next();
      count += is_chosen;
      chosen += is_chosen;
    }
    REQUIRE(chosen == 5);
  }
  // 1,000 expected, standard deviation 27.
  for (const int count : times) CHECK(std::abs(count - 1000) < 140);
}

TEST_CASE("dataset info: classes hold what they should, and the curve descends",
          "[dataset_forms]") {
  const TempFolder folder;
  std::string text = "20 2 6\n";
  for (int i = 0; i < 10; ++i) text += "0 1:1\n";
  for (int i = 0; i < 5; ++i) text += "1 1:1\n";
  for (int i = 0; i < 3; ++i) text += "2 1:1\n";
  text += "3 1:1\n4 1:1\n";
  write_file(folder.file("a.txt"), text);
  const Run found = run(folder, {"info", folder.file("a.txt"), "--json"});
  REQUIRE(found.status == 0);
  const auto json = nlohmann::json::parse(found.out);
  CHECK(json["gleaner_json"] == 1);
  CHECK(json["occurrences"] == 20);
  CHECK(json["labels_once"] == 2);
  CHECK(json["labels_never"] == 1);
  CHECK(json["points_most"] == 10);
  CHECK(json["classes"][0]["labels"] == 1);
  CHECK(json["classes"][1]["labels"] == 2);
  CHECK(json["classes"][2]["labels"] == 3);
  CHECK(json["classes"][2]["occurrences"] == 2);
  CHECK(json["curve"].front()["points"] == 10);
  CHECK(json["curve"].back()["rank"] == 5);
  const Run drawn = run(folder, {"info", folder.file("a.txt"), "--plot"});
  CHECK_THAT(drawn.out, Contains("***"));
  for (const std::string& line : lines_of(drawn.out)) CHECK(display_width(line) <= 100);
  write_file(folder.file("none.txt"), "1 1 1\n 0:1\n");
  CHECK(run(folder, {"info", folder.file("none.txt"), "--plot"}).status == 0);
}

}  // namespace gleaner
