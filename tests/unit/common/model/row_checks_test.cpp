#include "common/model/row_checks.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <string>

#include "common/model/shard_rows.hpp"

namespace gleaner {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr ShardId kOutput{0};

ModelConfig small_model() {
  ModelConfig model;
  model.features = 40;
  model.labels = 24;
  model.points = 100;
  model.hidden = 16;
  model.output_shards = 2;
  model.input_shards = 2;
  model.tables = 3;
  model.hash_bits = 4;
  return model;
}

void check_refused(const Result<void>& result, const std::string& clause) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == ErrorCode::kProtocol);
  CHECK_THAT(result.error().message, Catch::Contains(clause));
}

TEST_CASE("row checks: rows of a checkpoint or a hand-over", "[model]") {
  const ModelConfig model = small_model();
  const ShardMap map(model);
  ShardRows good;
  good.rows = {2, 5};
  good.values.assign(2 * map.row_width(kOutput), 0.5F);
  good.states = {0.0F, kStateMax};
  good.codes.assign(2 * map.codes_per_row(kOutput), 15);
  const auto check = [&](const ShardRows& rows, RowsOf source = RowsOf::kCheckpoint) {
    return check_rows(model, map, kOutput, rows, source);
  };
  CHECK(check(good).ok());
  CHECK(check({}).ok());
  check_refused(check(good, RowsOf::kHandOver), "the lists do not fit 2 rows");
  const auto refused = [&](const std::string& clause,
                           const std::function<void(ShardRows&)>& change) {
    ShardRows rows = good;
    change(rows);
    check_refused(check(rows), clause);
  };
  refused("the lists", [](ShardRows& r) { r.values.pop_back(); });
  refused("the lists", [](ShardRows& r) { r.states.pop_back(); });
  refused("the lists", [](ShardRows& r) { r.codes.pop_back(); });
  refused("row 2 is out of order", [](ShardRows& r) { r.rows = {5, 2}; });
  refused("row 5 is out of order", [](ShardRows& r) { r.rows = {5, 5}; });
  refused("row 12 is out of range", [](ShardRows& r) { r.rows = {2, 12}; });
  refused("row 2 has an optimizer state of -1", [](ShardRows& r) { r.states[0] = -1; });
  refused("row 5 has an optimizer state of nan", [](ShardRows& r) { r.states[1] = kNan; });
  refused("row 5 has an optimizer state of 3e+38", [](ShardRows& r) { r.states[1] = 3e38F; });
  refused("row 2 has a weight of 1e+30", [](ShardRows& r) { r.values[0] = 1e30F; });
  refused("row 5 has a weight of nan", [](ShardRows& r) { r.values.back() = kNan; });
  refused("row 5 has a hash code of 16", [](ShardRows& r) { r.codes.back() = 16; });

  ShardRows handed_over = good;
  handed_over.stale_codes = {0, 1};
  CHECK(check(handed_over, RowsOf::kHandOver).ok());
  handed_over.stale_codes = {0, 2};
  check_refused(check(handed_over, RowsOf::kHandOver), "2 is not a flag");
}

TEST_CASE("row checks: commits", "[model]") {
  const ModelConfig model = small_model();
  const ShardMap map(model);
  SparseUpdate good;
  good.rows = {2, 5};
  good.scales = {0.0F, kDeltaScaleMax};
  good.levels.assign(2 * map.weights_per_row(kOutput), kDeltaLevelMax);
  good.biases = {0, 0x7bff};
  good.states = {0.0F, kStateMax};
  CHECK(check_update(map, kOutput, good).ok());
  CHECK(check_update(map, kOutput, {}).ok());
  check_refused(check_update(map, map.input_shard(0), good), "the lists");
  const auto refused = [&](const std::string& clause,
                           const std::function<void(SparseUpdate&)>& change) {
    SparseUpdate update = good;
    change(update);
    check_refused(check_update(map, kOutput, update), clause);
  };
  refused("the lists", [](SparseUpdate& u) { u.levels.pop_back(); });
  refused("the lists", [](SparseUpdate& u) { u.scales.pop_back(); });
  refused("the lists", [](SparseUpdate& u) { u.biases.pop_back(); });
  refused("the lists", [](SparseUpdate& u) { u.states.push_back(0); });
  refused("row 2 is out of order", [](SparseUpdate& u) { u.rows = {5, 2}; });
  refused("row 4000 is out of range", [](SparseUpdate& u) { u.rows[1] = 4000; });
  refused("row 2 has an optimizer state of nan", [](SparseUpdate& u) { u.states[0] = kNan; });
  refused("row 2 has an optimizer state of 3e+38", [](SparseUpdate& u) { u.states[0] = 3e38F; });
  refused("row 2 changes by more", [](SparseUpdate& u) { u.levels[3] = kDeltaLevelMax + 1; });
  refused("row 5 changes by more", [](SparseUpdate& u) { u.scales[1] = -1.0F; });
  refused("row 5 changes by more", [](SparseUpdate& u) { u.scales[1] = kNan; });
  refused("row 5 changes by more", [](SparseUpdate& u) { u.biases[1] = 0x7c00; });
}

}  // namespace
}  // namespace gleaner
