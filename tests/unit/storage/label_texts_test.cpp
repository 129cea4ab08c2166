// Start rows of labels with texts, and labels that a model file gets or retires.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "common/data/packed_writer.hpp"
#include "storage/keep/wide_start.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

constexpr Dimensions kSize{6, 3};

std::unique_ptr<PackedDataset> packed(const std::string& path, const std::vector<Point>& points) {
  auto writer = test::require_value(PackedWriter::create(path, true));
  for (const Point& point : points) REQUIRE(writer->add(point).ok());
  REQUIRE(writer->finish(kSize, {}, "", AtomicFile::Existing::kReplace).ok());
  return test::require_value(PackedDataset::open(path));
}

// Labels 0 and 1 have examples of features 0 to 3. The texts of labels 1 and 2 have features 4
// and 5.
struct LabelTextsRun {
  test::TemporaryFolder folder;
  std::unique_ptr<PackedDataset> train = packed(
      folder.path() + "/train", {{{0}, {0, 1}, {1, 1}}, {{0}, {1, 2}, {1, 1}}, {{1}, {3}, {1}}});
  std::unique_ptr<PackedDataset> texts =
      packed(folder.path() + "/texts", {{{1}, {4}, {1}}, {{2}, {4, 5}, {1, 1}}, {{2}, {5}, {1}}});
  ModelConfig model;

  LabelTextsRun() {
    model.points = train->points();
    model.features = kSize.features;
    model.labels = kSize.labels;
    model.hidden = 0;
    model.output_shards = 1;
    model.wide_scale = 2;
  }

  [[nodiscard]] WideRow row(std::uint32_t label, const PackedDataset* with) const {
    WideRow row;
    REQUIRE(WideStart::open(model, *train, nullptr, with).value()->make_row(label, row).ok());
    return row;
  }
};

using Features = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("label texts: a label's row begins with its examples and its words", "[label_texts]") {
  LabelTextsRun run;
  CHECK(run.row(0, run.texts.get()).weights == run.row(0, nullptr).weights);
  CHECK(run.row(1, nullptr).features == Features{3});
  const WideRow row = run.row(1, run.texts.get());
  CHECK(row.features == Features{3, 4});
  CHECK(row.own > 0);
  run.model.wide_text_weight *= 4;
  CHECK(run.row(1, run.texts.get()).weights[1] > row.weights[1]);
  CHECK(run.row(1, run.texts.get()).weights[0] < row.weights[0]);
}

TEST_CASE("label texts: a label without examples has a row of its words", "[label_texts]") {
  const LabelTextsRun run;
  CHECK(run.row(2, nullptr).features.empty());
  const WideRow row = run.row(2, run.texts.get());
  CHECK(row.features == Features{4, 5});
  CHECK(row.weights[1] > row.weights[0]);  // both texts have it
  CHECK(row.own == 0);
  // A model that gets the label later begins with the same row.
  WideRow later;
  const auto start = WideStart::of_texts(run.model, *run.texts, {1, 2, 1, 1, 0, 0}).value();
  REQUIRE(start->make_row(2, later).ok());
  CHECK(later.features == row.features);
  CHECK(later.weights == row.weights);
  CHECK(later.bias == row.bias);
}

}  // namespace gleaner
