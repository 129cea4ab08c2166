#include "storage/infer/stored_model.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "common/model/shard_rows.hpp"
#include "storage/engine/memory_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::require_value;

std::unique_ptr<RunStore> small_run(MemoryStore& disk, RoundIndex checkpoint,
                                    const RunIdentity& identity = test::small_identity()) {
  auto run = require_value(
      RunStore::create_or_open(disk.share(), identity, test::small_label_counts(identity)));
  test::require_ok(test::train_to(*run, checkpoint));
  return run;
}

// A few points of the small run's nine features.
struct Examples {
  std::vector<Point> points{{{}, {0, 3, 8}, {0.5F, -0.25F, 1.0F}},
                            {{}, {}, {}},
                            {{}, {1, 2, 4, 5, 7}, {1.0F, 2.0F, 0.125F, 0.5F, 3.0F}}};

  [[nodiscard]] std::vector<ExampleView> views() const {
    std::vector<ExampleView> views;
    for (const Point& point : points) {
      views.push_back({point.labels, point.features, point.values});
    }
    return views;
  }
};

// A row as the checkpoint has it.
std::vector<float> row_of(RunStore& run, ShardId shard, std::uint32_t row) {
  const ShardRows stored = require_value(run.read_rows(shard, row, row + 1, run.checkpoint()));
  if (!stored.rows.empty()) return stored.values;
  std::vector<float> values(run.shard_map().row_width(shard));
  const auto counts = run.label_counts(shard);
  initial_row(run.identity().model, run.shard_map(), shard, row, counts.empty() ? 0 : counts[row],
              values);
  return values;
}

// Every label's score, in the plainest way and in double; `stored` counts the rows by whether they
// are in the store.
std::vector<double> slow_scores(RunStore& run, const ExampleView& example) {
  const ShardMap& map = run.shard_map();
  const ModelConfig& config = run.identity().model;
  std::vector<double> hidden;
  for (std::uint32_t i = 0; i < map.input_shards(); ++i) {
    const ShardId shard = map.input_shard(i);
    const std::vector<float> bias = row_of(run, shard, config.features);
    std::vector<double> units(bias.begin(), bias.end());
    for (std::size_t f = 0; f < example.features.size(); ++f) {
      const std::vector<float> row = row_of(run, shard, example.features[f]);
      for (std::size_t u = 0; u < units.size(); ++u) {
        units[u] += double{example.values[f]} * double{row[u]};
      }
    }
    hidden.insert(hidden.end(), units.begin(), units.end());
  }
  for (double& unit : hidden) unit = std::max(unit, 0.0);
  const double scale = *std::max_element(hidden.begin(), hidden.end()) / 127;
  for (double& unit : hidden) unit = scale > 0 ? std::round(unit / scale) * scale : 0;
  std::vector<double> scores(config.labels);
  for (std::uint32_t label = 0; label < config.labels; ++label) {
    const std::uint32_t neuron = map.neuron_of_label(label);
    const ShardId shard = map.shard_of_neuron(neuron);
    const std::vector<float> row = row_of(run, shard, neuron - map.neurons(shard).begin);
    scores[label] =
        std::inner_product(hidden.begin(), hidden.end(), row.begin(), double{row[config.hidden]});
  }
  return scores;
}

}  // namespace

TEST_CASE("stored model: logits are those of the checkpoint's rows, stored or initial",
          "[predict]") {
  MemoryStore disk;
  auto run = small_run(disk, 1);
  const std::uint32_t labels = run->identity().model.labels;
  const Examples examples;
  const auto views = examples.views();
  std::vector<std::vector<double>> expected;
  for (const ExampleView& view : views) expected.push_back(slow_scores(*run, view));
  std::size_t stored_rows = 0;
  for (std::uint32_t s = 0; s < run->shard_map().output_shards(); ++s) {
    stored_rows +=
        require_value(run->read_rows(ShardId{s}, 0, run->shard_map().row_count(ShardId{s}), 1))
            .rows.size();
  }
  REQUIRE(stored_rows > 0);
  REQUIRE(stored_rows < labels);

  ThreadPool pool(2);
  auto model = require_value(StoredModel::open(std::move(run), pool));
  REQUIRE(model->checkpoint() == 1);
  const auto top = require_value(model->top(views, 100));
  REQUIRE(top.size() == views.size() * labels);  // more were asked for than there are
  for (std::size_t e = 0; e < views.size(); ++e) {
    std::vector<bool> seen(labels);
    for (std::size_t i = 0; i < labels; ++i) {
      const ScoredLabel& scored = top[e * labels + i];
      INFO("example " << e << " label " << scored.label);
      REQUIRE_FALSE(seen[scored.label]);
      seen[scored.label] = true;
      REQUIRE(scored.logit == Approx(expected[e][scored.label]).margin(2e-4));
      if (i > 0) REQUIRE(top[e * labels + i - 1].logit >= scored.logit);
    }
  }
}

TEST_CASE("stored model: neither threads, kept memory nor batches change a bit", "[predict]") {
  MemoryStore disk;
  small_run(disk, 3);
  const Examples examples;
  const auto views = examples.views();
  const auto open = [&](ThreadPool& pool, std::uint64_t kept_bytes_max) {
    return require_value(
        StoredModel::open(require_value(RunStore::open(disk.share())), pool, kept_bytes_max));
  };
  ThreadPool one(1);
  ThreadPool three(3);
  auto all_kept = open(one, StoredModel::kKeptBytesMax);
  const auto expected = require_value(all_kept->top(views, 4));
  REQUIRE(expected.size() == views.size() * 4);
  REQUIRE(all_kept->kept_bytes() > 0);
  REQUIRE(require_value(all_kept->top(views, 4)) == expected);

  auto none_kept = open(three, 0);
  REQUIRE(require_value(none_kept->top(views, 4)) == expected);
  REQUIRE(none_kept->kept_bytes() == 0);

  // Room for one of the three shards.
  auto some_kept = open(one, all_kept->kept_bytes() / 2);
  REQUIRE(require_value(some_kept->top(views, 4)) == expected);
  REQUIRE(some_kept->kept_bytes() > 0);
  REQUIRE(some_kept->kept_bytes() <= all_kept->kept_bytes() / 2);

  for (std::size_t e = 0; e < views.size(); ++e) {
    const auto alone = require_value(some_kept->top(std::span(views).subspan(e, 1), 4));
    REQUIRE(std::equal(alone.begin(), alone.end(), expected.begin() + static_cast<long>(e) * 4));
  }
  REQUIRE(require_value(some_kept->top(std::span<const ExampleView>(), 4)).empty());
}

TEST_CASE("stored model: a run without a checkpoint is refused", "[predict]") {
  MemoryStore disk;
  ThreadPool pool(1);
  test::check_error(StoredModel::open(small_run(disk, 0), pool), ErrorCode::kNotFound,
                    "no checkpoint yet");
}

TEST_CASE("stored model: whether rows are normalised is the run's word", "[predict]") {
  ThreadPool pool(1);
  for (const char* word : {"", "true", "false", "maybe"}) {
    MemoryStore disk;
    RunIdentity identity = test::small_identity();
    if (*word != '\0') identity.settings["data.l2_normalise"] = word;
    auto model = StoredModel::open(small_run(disk, 1, identity), pool);
    INFO("setting '" << word << "'");
    if (std::string(word) == "maybe") {
      test::check_error(model, ErrorCode::kCorrupt, "data.l2_normalise is 'maybe'");
    } else {
      REQUIRE(require_value(std::move(model))->is_normalised() == (std::string(word) != "false"));
    }
  }
}

}  // namespace gleaner
