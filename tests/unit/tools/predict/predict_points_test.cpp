#include <fmt/format.h>

#include <set>

#include "tests/unit/common/data/dataset_files.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/predict/predict_examples.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::require_value;

TextOptions options_for(Dimensions limits) {
  TextOptions options;
  options.limits = limits;
  options.limits_name = "the model";
  return options;
}

Result<std::unique_ptr<PredictExamples>> open(const std::string& path, Dimensions limits) {
  return PredictExamples::open(path, options_for(limits), {});
}

// Reads to the end.
Result<std::uint64_t> count_points(PredictExamples& points) {
  IndexedExample point;
  std::uint64_t count = 0;
  for (;;) {
    Result<bool> has_point = points.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) return count;
    REQUIRE(point.index == count);
    ++count;
  }
}

// Every third of 300 points has no labels.
std::string many_points() {
  std::string text = "300 20 10\n";
  for (int i = 0; i < 300; ++i) {
    text += i % 3 == 0 ? fmt::format(" {}:1\n", i % 20) : fmt::format("{} {}:1\n", i % 10, i % 20);
  }
  return text;
}

}  // namespace

TEST_CASE("predict points: ids beyond the model are refused by file and line", "[predict]") {
  TempFolder folder;
  const std::string path = folder.file("points.svm");
  write_file(path, "0 1:1\n1 20:1\n2 21:1\n");
  auto points = require_value(open(path, {20, 10}));
  check_error(count_points(*points), ErrorCode::kInvalidData,
              path + ":3:3: expected a feature id from 1 to 20");
  write_file(path, "0 1:1\n10 20:1\n");
  points = require_value(open(path, {20, 10}));
  check_error(count_points(*points), ErrorCode::kInvalidData, path + ":2:1: expected a label");
  CHECK_THAT(count_points(*require_value(open(path, {20, 10}))).error().message,
             Catch::Contains("the model has 10 labels"));
}

TEST_CASE("predict points: packed files are read, and refused when beyond the model", "[predict]") {
  TempFolder folder;
  const std::string text = folder.file("points.txt");
  write_file(text, many_points());
  PackFlags pack;
  pack.source = text;
  pack.output = folder.file("points.gleaner");
  test::require_ok(run_dataset_pack(pack));
  auto points = require_value(open(pack.output, {20, 10}));
  CHECK(points->is_normalised());
  CHECK(points->announced() == Dimensions{20, 10});
  CHECK(require_value(count_points(*points)) == 300);
  check_error(open(pack.output, {19, 10}), ErrorCode::kInvalidData,
              "expected ids below 19 features and 10 labels as the model has them, "
              "found feature ids up to 19 and label ids up to 9");
  CHECK_FALSE(require_value(open(text, {20, 10}))->is_normalised());
}

TEST_CASE("predict points: a missing file is bad data, not a missing store", "[predict]") {
  TempFolder folder;
  check_error(open(folder.file("none.txt"), {20, 10}), ErrorCode::kInvalidData, "none.txt");
}

TEST_CASE("predict points: a choice has labels, keeps the file's order, follows its seed",
          "[predict]") {
  TempFolder folder;
  const std::string path = folder.file("points.txt");
  write_file(path, many_points());
  const auto choose = [&](std::uint64_t count, std::uint64_t seed) {
    auto points = require_value(open(path, {20, 10}));
    std::vector<std::uint64_t> chosen;
    for (const IndexedExample& point : require_value(choose_examples(*points, count, seed))) {
      CHECK(point.point.labels ==
            std::vector<std::uint32_t>{static_cast<std::uint32_t>(point.index % 10)});
      chosen.push_back(point.index);
    }
    CHECK(std::is_sorted(chosen.begin(), chosen.end()));
    CHECK(std::set(chosen.begin(), chosen.end()).size() == chosen.size());
    return chosen;
  };
  const auto ten = choose(10, 1);
  REQUIRE(ten.size() == 10);
  CHECK(ten == choose(10, 1));
  CHECK(ten != choose(10, 2));
  // A larger choice holds the smaller.
  const auto eleven = choose(11, 1);
  CHECK(std::includes(eleven.begin(), eleven.end(), ten.begin(), ten.end()));
  // Spread over the file.
  const auto hundred = choose(100, 1);
  for (std::uint64_t part = 0; part < 3; ++part) {
    CHECK(std::count_if(hundred.begin(), hundred.end(),
                        [part](std::uint64_t i) { return i / 100 == part; }) > 15);
  }
  CHECK(choose(1000, 1).size() == 200);
}

}  // namespace gleaner
