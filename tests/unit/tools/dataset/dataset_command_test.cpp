#include "tools/dataset/dataset_command.hpp"

#include <nlohmann/json.hpp>

#include "common/data/open_or_pack.hpp"
#include "common/data/point_writer.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/tools/dataset/run_dataset.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::read_points;
using test::Run;
using test::run;

void make_set(const TempFolder& folder, const std::string& name) {
  const Run made = run(folder, {"synth", "--train", folder.file(name), "--points", "400",
                                "--labels", "50", "--features", "200"});
  INFO(made.err);
  REQUIRE(made.status == 0);
}

}  // namespace

TEST_CASE("dataset commands: every verb explains itself with examples", "[dataset_command]") {
  const TempFolder folder;
  for (const char* verb : {"info", "convert", "pack", "split", "synth"}) {
    const Run help = run(folder, {verb, "--help"});
    CHECK(help.status == 0);
    CHECK_THAT(help.out, Contains("Examples:\n  "));
    CHECK_THAT(help.out, Contains("Exit status: 0 done"));
    CHECK(run(folder, {verb, "--no-such-flag"}).status == 2);
  }
  CHECK(run(folder, {}).status == 2);
  CHECK(run(folder, {"validate", "a.txt"}).status == 2);
}

TEST_CASE("dataset commands: synth writes what it says, the same for the same seed",
          "[dataset_command]") {
  const TempFolder folder;
  const std::vector<std::string> common = {"--points", "300", "--test-points", "100",
                                           "--labels", "50",  "--features",    "200"};
  const auto synth = [&](const std::string& train, const std::string& test, const char* seed) {
    std::vector<std::string> arguments = {
        "synth", "--train", folder.file(train), "--test", folder.file(test), "--seed", seed};
    arguments.insert(arguments.end(), common.begin(), common.end());
    return run(folder, arguments);
  };
  REQUIRE(synth("a.txt", "at.txt", "5").status == 0);
  REQUIRE(synth("b.txt.gz", "bt.txt.zst", "5").status == 0);
  REQUIRE(synth("c.txt", "ct.txt", "6").status == 0);
  CHECK_THAT(read_file(folder.file("a.txt")), StartsWith("300 200 50\n"));
  CHECK(read_points(folder.file("a.txt")).size() == 300);
  CHECK(read_points(folder.file("a.txt")) == read_points(folder.file("b.txt.gz")));
  CHECK(read_points(folder.file("at.txt")) == read_points(folder.file("bt.txt.zst")));
  CHECK(read_points(folder.file("a.txt")) != read_points(folder.file("c.txt")));
  const Run refused = run(folder, {"synth", "--train", folder.file("x"), "--labels", "0"});
  CHECK(refused.status == 2);
  CHECK_THAT(refused.err, StartsWith("gleaner: --labels 0 is out of range"));
}

TEST_CASE("dataset commands: nothing is overwritten without --force", "[dataset_command]") {
  const TempFolder folder;
  make_set(folder, "a.txt");
  write_file(folder.file("kept"), "precious");
  const std::vector<std::vector<std::string>> commands = {
      {"synth", "--train", folder.file("kept")},
      {"synth", "--train", folder.file("new"), "--test", folder.file("kept")},
      {"split", folder.file("a.txt"), "--train", folder.file("new"), "--test", folder.file("kept")},
      {"pack", folder.file("a.txt"), "--output", folder.file("kept")},
      {"convert", folder.file("a.txt"), "--output", folder.file("kept")},
      {"split", folder.file("a.txt"), "--points", "3", "--sample", folder.file("kept")}};
  for (const auto& command : commands) {
    const Run refused = run(folder, command);
    CHECK(refused.status == 2);
    CHECK_THAT(refused.err, Contains("exists already; name another file, or give --force"));
    CHECK(read_file(folder.file("kept")) == "precious");
    CHECK_FALSE(std::filesystem::exists(folder.file("new")));
  }
  CHECK(run(folder, {"pack", folder.file("a.txt"), "--output", folder.file("kept"), "--force"})
            .status == 0);
  CHECK(PackedDataset::open(folder.file("kept")).ok());
}

TEST_CASE("dataset commands: split puts every point into one part, by seed and place",
          "[dataset_command]") {
  const TempFolder folder;
  make_set(folder, "a.txt");
  const std::vector<Point> all = read_points(folder.file("a.txt"));
  std::string svm;
  for (const Point& point : all) append_libsvm(svm, point, 0);
  write_file(folder.file("a.svm"), svm);
  const auto split = [&](const std::string& source, const std::string& part, const char* seed) {
    return run(folder, {"split", folder.file(source), "--train", folder.file(part + "train"),
                        "--test", folder.file(part + "test"), "--share", "0.25", "--seed", seed,
                        "--first-feature", "0"});
  };
  REQUIRE(split("a.txt", "x", "3").status == 0);
  std::vector<Point> train;
  std::vector<Point> test;
  for (std::size_t i = 0; i < all.size(); ++i) {
    (is_test_point(3, i, 0.25) ? test : train).push_back(all[i]);
  }
  CHECK(read_points(folder.file("xtrain")) == train);
  CHECK(read_points(folder.file("xtest")) == test);
  CHECK(test.size() > 70);
  CHECK(test.size() < 130);
  CHECK_THAT(read_file(folder.file("xtest")),
             StartsWith(std::to_string(test.size()) + " 200 50\n"));
  REQUIRE(split("a.svm", "y", "3").status == 0);
  CHECK(read_points(folder.file("ytrain")) == train);
  REQUIRE(split("a.txt", "z", "4").status == 0);
  CHECK(read_points(folder.file("ztest")) != test);
}

TEST_CASE("dataset commands: a split that cannot be is refused and leaves nothing",
          "[dataset_command]") {
  const TempFolder folder;
  write_file(folder.file("one.txt"), "1 5 5\n1 1:1\n");
  write_file(folder.file("bad.txt"), "2 5 5\n1 1:1\n1 1:nan\n");
  const auto split = [&](const char* source, const char* share) {
    return run(folder, {"split", folder.file(source), "--train", folder.file("x"), "--test",
                        folder.file("y"), "--share", share});
  };
  CHECK(split("one.txt", "0.5").status == 3);
  CHECK(split("one.txt", "1.5").status == 2);
  const Run bad = split("bad.txt", "0.5");
  CHECK(bad.status == 3);
  CHECK(folder.entries() == 2);
  CHECK(split("none.txt", "0.5").status == 3);
}

TEST_CASE("dataset commands: info tells counts and warnings as text and JSON",
          "[dataset_command]") {
  const TempFolder folder;
  write_file(folder.file("a.txt"), "2 10 5\n1,3 0:0.5 7:-2\n 9:0 8:1\n");
  write_file(folder.file("labels.txt"), "zero\none\ntwo\nthree\nfour\n");
  const Run text = run(folder, {"info", folder.file("a.txt")});
  REQUIRE(text.status == 0);
  CHECK_THAT(text.out, Contains("(XC text)"));
  CHECK_THAT(text.out, Contains("1 examples   one"));
  CHECK_THAT(text.out, Contains("1 examples have no labels"));
  const Run json = run(folder, {"info", "--json", folder.file("a.txt")});
  const auto parsed = nlohmann::json::parse(json.out);
  CHECK(parsed["points"] == 2);
  CHECK(parsed["labels"] == 5);
  CHECK(parsed["features_seen"] == 3);
  CHECK(parsed["frequent_labels"][0]["name"] == "one");
  CHECK(parsed["points_by_labels"].size() == 3);
  for (const char* sentence : {"labels never occur", "features never occur"}) {
    CHECK(std::ranges::any_of(parsed["warnings"], [&](const auto& warning) {
      return warning.template get<std::string>().find(sentence) != std::string::npos;
    }));
  }
  REQUIRE(run(folder, {"pack", folder.file("a.txt")}).status == 0);
  const Run packed = run(folder, {"info", "--json", folder.file("a.txt.gleaner")});
  CHECK(nlohmann::json::parse(packed.out)["is_normalized"] == true);
  const Run refused = run(folder, {"info", folder.file("none.txt")});
  CHECK(refused.status == 3);
  CHECK_THAT(refused.err, Contains("cannot be opened"));
}

TEST_CASE("dataset commands: the folder of a data set stands for its training part",
          "[dataset_command]") {
  const TempFolder folder;
  write_file(folder.file("a.csv"), "text,tags\nred fox,fox\nred hen,hen\nred owl,owl\n");
  const std::string set = folder.file("set");
  REQUIRE(run(folder, {"convert", folder.file("a.csv"), "--text", "text", "--tags", "tags",
                       "--min-count", "1", "--output", set})
              .status == 0);
  const auto examples = [&] {
    const Run told = run(folder, {"info", "--json", set});
    REQUIRE(told.status == 0);
    const auto json = nlohmann::json::parse(told.out);
    return std::pair(json["source"].get<std::string>(), json["points"].get<int>());
  };
  CHECK(examples() == std::pair(set + "/train.txt", 3));
  // As Python's fit() leaves a set.
  REQUIRE(run(folder, {"pack", set, "--output", set + "/train.gleaner"}).status == 0);
  std::filesystem::remove(set + "/train.txt");
  CHECK(examples() == std::pair(set + "/train.gleaner", 3));
  CHECK(run(folder, {"info", folder.file("")}).status == 2);
}

TEST_CASE("dataset commands: pack makes the cache, or a file with the same bytes anywhere",
          "[dataset_command]") {
  const TempFolder folder;
  make_set(folder, "a.txt");
  std::filesystem::copy(folder.file("a.txt"), folder.file("b.txt"));
  const Run cache = run(folder, {"pack", folder.file("a.txt")});
  CHECK_THAT(cache.out, StartsWith(folder.file("a.txt.gleaner") + ": 400 examples, 200 features"));
  for (const char* name : {"a", "b"}) {
    REQUIRE(run(folder, {"pack", folder.file(std::string(name) + ".txt"), "--output",
                         folder.file(std::string(name) + ".packed")})
                .status == 0);
  }
  CHECK(read_file(folder.file("a.packed")) == read_file(folder.file("b.packed")));
  const Run twice = run(folder, {"pack", folder.file("a.packed"), "--output", folder.file("c")});
  CHECK(twice.status == 2);
  CHECK_THAT(twice.err, Contains("is packed already"));
}

TEST_CASE("dataset commands: pack --like takes on another set's dimensions", "[dataset_command]") {
  const TempFolder folder;
  make_set(folder, "train.txt");
  write_file(folder.file("test.txt"), "1 900 900\n3 199:1\n");
  write_file(folder.file("wide.txt"), "1 900 900\n3 200:1\n");
  const auto pack = [&](const char* name) {
    return run(folder, {"pack", folder.file(name), "--like", folder.file("train.txt"), "--output",
                        folder.file("out")});
  };
  CHECK_THAT(pack("test.txt").out, Contains("1 examples, 200 features, 50 labels"));
  std::filesystem::remove(folder.file("out"));
  const Run wide = pack("wide.txt");
  CHECK(wide.status == 3);
  CHECK_THAT(wide.err, Contains("wide.txt:2:3: expected a feature id from 0 to 199"));
}

}  // namespace gleaner
