#include "common/train/active_set.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/unit/common/train/train_fixture.hpp"

namespace gleaner {
namespace {

// A batch of queries and one shard's tables with random codes.
struct Scene {
  ModelConfig config;
  ShardMap map;
  ThreadPool pool{1};
  std::unique_ptr<SimHash> sim_hash;
  QuantizedActivations hidden;
  Positives positives;
  QueryBatch queries;
  ShardCodes codes{0, 1, 0};
  HashTables tables;
  HeldShard asked;
  ActiveSetChooser chooser;
  ActiveSets sets;
  ShardCounts counts;
  PairLists lists;

  explicit Scene(const ModelConfig& model, BatchIndex batch = 2)
      : config(model),
        map(config),
        sim_hash(config.sampling == Sampling::kLsh
                     ? std::make_unique<SimHash>(config, kernels_for(SimdLevel::kScalar))
                     : nullptr),
        hidden(test::make_hidden(config, batch, 16)),
        positives(test::make_positives(config, batch, 16)),
        queries(config, sim_hash.get()),
        tables(sim_hash == nullptr ? 0 : config.tables, config.hash_bits),
        chooser(config) {
    queries.prepare(batch, hidden, pool);
  }

  [[nodiscard]] ShardCodes codes_of(ShardId shard) const {
    const std::uint32_t rows = map.row_count(shard);
    ShardCodes result(map.codes_per_row(shard), config.hash_bits, rows);
    Rng rng(raw(shard), Purpose::kTest);
    std::vector<std::uint32_t> of_row(result.tables());
    for (std::uint32_t row = 0; row < rows; ++row) {
      for (auto& code : of_row) code = static_cast<std::uint32_t>(rng.next_below(16));
      result.write({&row, 1}, of_row);
    }
    return result;
  }

  // Holds this shard alone and chooses from it.
  void build(ShardId shard) {
    codes = codes_of(shard);
    const ShardCodes* const held[] = {&codes};
    tables.hold(held);
    tables.rebuild();
    asked = {shard, map.neurons(shard), true};
    counts.clear(16, 1);
    chooser.choose(queries, positives, {{&asked, 1}, tables}, {0, 16}, sets, counts);
    const RowPart part{0, 0, 0, map.row_count(shard)};
    lists.build({&sets, 1}, {&part, 1}, pool);
  }

  [[nodiscard]] std::set<std::uint32_t> truths(std::uint32_t example, ShardId shard) const {
    std::set<std::uint32_t> rows;
    for (std::uint32_t i = positives.offsets[example]; i < positives.offsets[example + 1]; ++i) {
      if (map.shard_of_neuron(positives.neurons[i]) == shard) {
        rows.insert(positives.neurons[i] - map.neurons(shard).begin);
      }
    }
    return rows;
  }

  // Rows of the example's buckets over all tables.
  [[nodiscard]] std::set<std::uint32_t> candidates(std::uint32_t example, ShardId shard) const {
    REQUIRE(asked.id == shard);
    std::set<std::uint32_t> rows;
    for (std::uint32_t table = 0; table < tables.tables(); ++table) {
      const auto bucket = tables.bucket(table, queries.hashes(example)[table]);
      rows.insert(bucket.begin(), bucket.end());
    }
    return rows;
  }
};

using Negatives = std::vector<std::vector<std::uint32_t>>;

// The neurons that each example chose besides its truths, in order of choice; checks the truths on
// the way.
Negatives negatives_of(const Scene& scene, ShardId shard) {
  Negatives result;
  for (std::uint32_t example = 0; example < 16; ++example) {
    const auto truths = scene.truths(example, shard);
    const auto chosen = scene.sets.chosen(example);
    REQUIRE(std::set<std::uint32_t>(chosen.begin(), chosen.end()).size() == chosen.size());
    REQUIRE(chosen.size() >= truths.size());
    const auto negatives = chosen.begin() + static_cast<std::ptrdiff_t>(truths.size());
    REQUIRE(std::set<std::uint32_t>(chosen.begin(), negatives) == truths);
    result.emplace_back(negatives, chosen.end());
  }
  return result;
}

}  // namespace

TEST_CASE("active sets: truths, then bucket members up to the shard's part of the cap",
          "[active]") {
  ModelConfig config = test::small_config();
  config.random_negatives = 0;
  bool cap_cut = false;
  bool cap_left_room = false;
  // Parts of 1 or 2, of 12, and more than there are rows.
  for (const std::uint32_t cap : {6u, 60u, 1000u}) {
    config.active_cap = cap;
    Scene scene(config);
    for (std::uint32_t index = 0; index < 5; ++index) {
      const ShardId shard{index};
      scene.build(shard);
      const Negatives negatives = negatives_of(scene, shard);
      for (std::uint32_t example = 0; example < 16; ++example) {
        // The remainder of a division by five shards goes round them. The scene's batch is
        // number 2.
        const std::uint32_t share = cap / 5 + ((2 + example + index) % 5 < cap % 5 ? 1 : 0);
        std::set<std::uint32_t> possible = scene.candidates(example, shard);
        for (const std::uint32_t row : scene.truths(example, shard)) possible.erase(row);
        REQUIRE(negatives[example].size() == std::min<std::size_t>(share, possible.size()));
        for (const std::uint32_t row : negatives[example]) REQUIRE(possible.count(row) == 1);
        (possible.size() > share ? cap_cut : cap_left_room) = true;
      }
    }
  }
  REQUIRE(cap_cut);
  REQUIRE(cap_left_room);
}

TEST_CASE("active sets: random negatives come on top of the cap", "[active]") {
  ModelConfig config = test::small_config();
  config.active_cap = 5;
  config.random_negatives = 37;  // 8 a shard
  Scene scene(config);
  std::size_t total = 0;
  for (std::uint32_t index = 0; index < 5; ++index) {
    scene.build(ShardId{index});
    for (const auto& negatives : negatives_of(scene, ShardId{index})) {
      REQUIRE(negatives.size() <= 9);
      total += negatives.size();
    }
  }
  // A few of 80 x 9 draws fall on rows already there.
  REQUIRE(total > 80 * 7);
}

TEST_CASE("active sets: uniform sampling takes exactly the share, all distinct", "[active]") {
  ModelConfig config = test::small_config();
  config.sampling = Sampling::kRandom;
  std::map<std::uint32_t, std::uint32_t> hits;
  for (BatchIndex batch = 0; batch < 40; ++batch) {
    Scene scene(config, batch);
    scene.build(ShardId{1});
    for (const auto& negatives : negatives_of(scene, ShardId{1})) {
      REQUIRE(negatives.size() == 12);
      for (const std::uint32_t row : negatives) ++hits[row];
    }
  }
  // 640 x 12 draws over 60 rows: about 128 each.
  REQUIRE(hits.size() == 60);
  for (const auto& [row, count] : hits) {
    CAPTURE(row);
    REQUIRE(count > 80);
    REQUIRE(count < 180);
  }
}

TEST_CASE("active sets: uniform sampling beyond the shard takes every row once", "[active]") {
  ModelConfig config = test::small_config();
  config.sampling = Sampling::kRandom;
  config.active_cap = 5000;
  Scene scene(config);
  scene.build(ShardId{0});
  for (std::uint32_t example = 0; example < 16; ++example) {
    REQUIRE(scene.sets.chosen(example).size() == scene.map.row_count(ShardId{0}));
  }
  negatives_of(scene, ShardId{0});
}

TEST_CASE("active sets: all-neurons sampling takes every row for every example", "[active]") {
  ModelConfig config = test::small_config();
  config.sampling = Sampling::kAll;
  Scene scene(config);
  scene.build(ShardId{4});
  negatives_of(scene, ShardId{4});
  REQUIRE(scene.lists.active(0) == std::uint64_t{16} * scene.map.row_count(ShardId{4}));
}

TEST_CASE("active sets: each row's list is the inverse of the examples' choices", "[active]") {
  Scene scene(test::small_config());
  for (const ShardId shard : {ShardId{3}, ShardId{0}}) {
    scene.build(shard);
    std::map<std::uint32_t, std::vector<ActivePair>> expected;
    for (std::uint32_t example = 0; example < 16; ++example) {
      const auto truths = scene.truths(example, shard);
      for (const std::uint32_t row : scene.sets.chosen(example)) {
        const std::uint32_t mark = truths.count(row) != 0 ? kTruePair : 0;
        expected[row].push_back(static_cast<ActivePair>(example | mark));
      }
    }
    std::map<std::uint32_t, std::vector<ActivePair>> found;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < scene.lists.rows(0).size(); ++i) {
      const std::size_t end = scene.lists.pair_ends(0)[i];
      found[scene.lists.rows(0)[i]].assign(scene.lists.pairs(0) + begin,
                                           scene.lists.pairs(0) + end);
      begin = end;
    }
    REQUIRE(found == expected);
    REQUIRE(scene.lists.active(0) == begin);
    REQUIRE(std::is_sorted(scene.lists.rows(0).begin(), scene.lists.rows(0).end()));
  }
}

TEST_CASE("active sets: parts of the examples and of the rows give the whole", "[active]") {
  ModelConfig config = test::small_config();
  config.labels = 901;
  Scene scene(config);
  const ShardId shard{1};
  scene.build(shard);
  const std::uint32_t rows = scene.map.row_count(shard);
  std::vector<ActiveSets> parts(3);
  const std::array<std::uint32_t, 4> cuts{0, 5, 5, 16};
  ShardCounts counts;
  counts.clear(16, 1);
  for (std::size_t part = 0; part < parts.size(); ++part) {
    const ExampleRange examples{cuts[part], cuts[part + 1]};
    scene.chooser.choose(scene.queries, scene.positives, {{&scene.asked, 1}, scene.tables},
                         examples, parts[part], counts);
    for (std::uint32_t example = examples.begin; example < examples.end; ++example) {
      const auto chosen = parts[part].chosen(example);
      const auto expected = scene.sets.chosen(example);
      REQUIRE(std::equal(chosen.begin(), chosen.end(), expected.begin(), expected.end()));
      REQUIRE(counts.at(example, 0) == chosen.size());
    }
  }
  const std::array<RowPart, 3> ranges{RowPart{0, 0, 0, 64}, {0, 0, 64, 128}, {0, 0, 128, rows}};
  PairLists lists;
  ThreadPool pool(3);
  lists.build(parts, ranges, pool);
  std::vector<std::uint32_t> found_rows;
  std::vector<ActivePair> found_pairs;
  for (std::size_t part = 0; part < ranges.size(); ++part) {
    found_rows.insert(found_rows.end(), lists.rows(part).begin(), lists.rows(part).end());
    found_pairs.insert(found_pairs.end(), lists.pairs(part),
                       lists.pairs(part) + lists.active(part));
  }
  REQUIRE(std::equal(found_rows.begin(), found_rows.end(), scene.lists.rows(0).begin(),
                     scene.lists.rows(0).end()));
  REQUIRE(std::equal(found_pairs.begin(), found_pairs.end(), scene.lists.pairs(0),
                     scene.lists.pairs(0) + scene.lists.active(0)));
}

TEST_CASE("active sets: parts of a shard follow one another and fit their counters", "[active]") {
  for (const std::uint32_t rows :
       {1u, 63u, 64u, 65u, 1'000u, kPartRows, kPartRows + 1, 2'800'000u}) {
    for (const std::size_t wanted : {1, 2, 7, 64}) {
      std::vector<RowPart> parts;
      cut_into_parts(3, 640, rows, wanted, parts);
      std::uint32_t end = 640;
      for (const RowPart& part : parts) {
        REQUIRE(part.shard == 3);
        REQUIRE(part.shard_begin == 640);
        REQUIRE(part.begin == end);
        REQUIRE(part.begin % HashTables::kSection == 0);
        REQUIRE(part.end > part.begin);
        REQUIRE(part.end - part.begin <= kPartRows);
        end = part.end;
      }
      REQUIRE(end == 640 + rows);
      REQUIRE(parts.size() >= std::min<std::size_t>(wanted, (rows + 63) / 64));
    }
  }
}

TEST_CASE("active sets: a choice depends on batch and position, not on what was built before",
          "[active]") {
  const ModelConfig config = test::small_config();
  Scene used(config);
  for (std::uint32_t shard = 0; shard < 5; ++shard) used.build(ShardId{shard});
  used.build(ShardId{2});
  Scene fresh(config);
  fresh.build(ShardId{2});
  REQUIRE(negatives_of(used, ShardId{2}) == negatives_of(fresh, ShardId{2}));
  Scene later(config, 3);
  later.build(ShardId{2});
  REQUIRE(negatives_of(later, ShardId{2}) != negatives_of(fresh, ShardId{2}));
}

}  // namespace gleaner
