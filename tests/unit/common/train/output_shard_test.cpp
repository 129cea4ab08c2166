#include "common/train/output_shard.hpp"

#include <bit>
#include <catch2/catch.hpp>
#include <cmath>

#include "common/model/shard_rows.hpp"
#include "common/portable_math.hpp"
#include "tests/unit/common/train/shard_scene.hpp"

namespace gleaner {
namespace {

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  });
}

// The loss of one pair as a function of the logit, in double.
double pair_loss(double z, bool is_true) {
  const double margin = is_true ? -z : z;
  return std::max(margin, 0.0) + std::log1p(std::exp(-std::abs(margin)));
}

// A step in double arithmetic. Made between the preparation of the batch and the shard's own step;
// the test adds what each pair contributes.
struct DoubleStep {
  const ShardScene& scene;
  std::size_t width;
  std::vector<std::vector<float>> before;
  double loss = 0;
  std::vector<double> dh;
  std::vector<std::vector<double>> gradients;  // by row, its bias last

  explicit DoubleStep(const ShardScene& prepared)
      : scene(prepared),
        width(scene.config.hidden),
        dh(scene.hidden.examples * width, 0.0),
        gradients(scene.shard.rows().rows(), std::vector<double>(width + 1, 0.0)) {
    for (std::uint32_t r = 0; r < gradients.size(); ++r) before.push_back(scene.row(r));
  }

  [[nodiscard]] double hidden(std::uint32_t e, std::size_t i) const {
    const auto code = static_cast<std::int8_t>(scene.hidden.codes[e * width + i]);
    return static_cast<double>(scene.hidden.scales[e]) * code;
  }

  [[nodiscard]] double logit(std::uint32_t e, std::uint32_t r) const {
    double z = before[r][width];
    for (std::size_t i = 0; i < width; ++i) z += before[r][i] * hidden(e, i);
    return z;
  }

  [[nodiscard]] bool is_true(std::uint32_t e, std::uint32_t r) const {
    const auto begin = scene.positives.neurons.begin() + scene.positives.offsets[e];
    const auto end = scene.positives.neurons.begin() + scene.positives.offsets[e + 1];
    return std::find(begin, end, scene.shard.neurons().begin + r) != end;
  }

  // `delta` is the loss's derivative by the pair's logit.
  void add(std::uint32_t e, std::uint32_t r, double delta) {
    for (std::size_t i = 0; i < width; ++i) {
      dh[e * width + i] += delta * before[r][i];
      gradients[r][i] += delta * hidden(e, i);
    }
    gradients[r][width] += delta;
  }

  // The shard's step must have been this one.
  void require_done(const ShardOutcome& outcome) const {
    const ModelConfig& config = scene.config;
    REQUIRE(static_cast<double>(outcome.loss) / 1048576 == Approx(loss).epsilon(1e-5));
    for (std::size_t i = 0; i < dh.size(); ++i) {
      const double step = std::ldexp(1.0, config.gradient_step_log2);
      REQUIRE(scene.gradient()[i] * step == Approx(dh[i]).margin(0.51 * step + 1e-4));
    }
    for (std::uint32_t r = 0; r < gradients.size(); ++r) {
      double squares = 0;
      for (const double g : gradients[r]) squares += g * g;
      const double state = kFirstFraction * squares / static_cast<double>(width + 1);
      REQUIRE(scene.shard.rows().state(r) == Approx(state).epsilon(1e-3));
      const std::vector<float> after = scene.row(r);
      for (std::size_t i = 0; i <= width; ++i) {
        const double moved =
            -config.output_rate * gradients[r][i] / (std::sqrt(state) + config.epsilon);
        REQUIRE(after[i] - before[r][i] == Approx(moved).epsilon(2e-3).margin(1e-5));
      }
    }
  }
};

}  // namespace

TEST_CASE("output shard: a step is that of double arithmetic", "[output_shard]") {
  ModelConfig config = test::small_config();
  // All neurons, or twelve of sixty at random.
  config.sampling = GENERATE(Sampling::kAll, Sampling::kRandom);
  ShardScene scene(config);
  scene.prepare(0);
  DoubleStep expected(scene);
  const ShardOutcome outcome = scene.train_prepared(0);
  const std::uint32_t examples = scene.hidden.examples;

  std::uint64_t active = 0;
  for (std::uint32_t e = 0; e < examples; ++e) {
    const auto chosen = scene.layer.sets().chosen(e);
    active += chosen.size();
    for (const std::uint32_t r : chosen) {
      const double z = expected.logit(e, r);
      const bool is_true = expected.is_true(e, r);
      expected.loss += pair_loss(z, is_true);
      expected.add(e, r, 1 / (1 + std::exp(-z)) - (is_true ? 1 : 0));
    }
  }
  REQUIRE(outcome.active == active);
  const std::uint64_t least = config.sampling == Sampling::kAll ? scene.shard.rows().rows() : 12;
  REQUIRE(active >= examples * least);
  expected.require_done(outcome);
}

TEST_CASE("output shard: the loss falls along the gradient by its square, as it should",
          "[output_shard]") {
  // Finite differences: the integer dh predicts how the loss changes with the hidden values.
  ModelConfig config = test::small_config();
  config.sampling = Sampling::kAll;
  config.gradient_step_log2 = -12;
  ShardScene scene(config);
  std::vector<std::vector<float>> rows;
  for (std::uint32_t r = 0; r < scene.shard.rows().rows(); ++r) rows.push_back(scene.row(r));
  scene.train(1);
  const std::size_t width = config.hidden;
  const auto loss_at = [&](std::uint32_t e, const std::vector<double>& h) {
    double loss = 0;
    for (std::uint32_t r = 0; r < rows.size(); ++r) {
      double z = rows[r][width];
      for (std::size_t i = 0; i < width; ++i) z += rows[r][i] * h[i];
      const auto begin = scene.positives.neurons.begin() + scene.positives.offsets[e];
      const auto end = scene.positives.neurons.begin() + scene.positives.offsets[e + 1];
      loss += pair_loss(z, std::find(begin, end, scene.shard.neurons().begin + r) != end);
    }
    return loss;
  };
  for (std::uint32_t e = 0; e < 4; ++e) {
    std::vector<double> h(width);
    for (std::size_t i = 0; i < width; ++i) {
      h[i] = static_cast<double>(scene.hidden.scales[e]) *
             static_cast<std::int8_t>(scene.hidden.codes[e * width + i]);
    }
    for (std::size_t i = 0; i < width; ++i) {
      if (scene.hidden.codes[e * width + i] == 0) continue;
      auto high = h;
      auto low = h;
      high[i] += 1e-4;
      low[i] -= 1e-4;
      const double slope = (loss_at(e, high) - loss_at(e, low)) / 2e-4;
      REQUIRE(std::ldexp(scene.gradient()[e * width + i], -12) ==
              Approx(slope).margin(1.4e-4).epsilon(1e-4));
    }
  }
}

TEST_CASE("output shard: rows outside every active set stay untouched", "[output_shard]") {
  ModelConfig config = test::small_config();
  config.active_cap = 5;
  config.random_negatives = 0;
  config.hash_bits = 8;
  ShardScene scene(config);
  std::vector<std::vector<float>> before;
  for (std::uint32_t r = 0; r < scene.shard.rows().rows(); ++r) before.push_back(scene.row(r));
  scene.train(0);
  const auto active = scene.layer.rows(0, 0);
  REQUIRE(active.size() < before.size());
  REQUIRE(std::equal(active.begin(), active.end(), scene.shard.rows().touched().begin()));
  for (std::uint32_t r = 0; r < before.size(); ++r) {
    const bool was_active = std::binary_search(active.begin(), active.end(), r);
    REQUIRE(same_bits(scene.row(r), before[r]) != was_active);
    REQUIRE((scene.shard.rows().state(r) > 0) == was_active);
  }
}

TEST_CASE("output shard: rehashing brings the codes of touched rows up to date", "[output_shard]") {
  ShardScene scene(test::small_config());
  scene.require_fresh_codes();
  std::vector<std::uint32_t> before(scene.config.tables);
  std::vector<std::uint32_t> after(scene.config.tables);
  std::size_t changed = 0;
  scene.train(0);
  scene.train(1);
  const std::vector<ShardRows> stale = scene.shard.touched_rows();
  REQUIRE(std::all_of(stale[0].stale_codes.begin(), stale[0].stale_codes.end(),
                      [](std::uint8_t flag) { return flag == 1; }));
  scene.shard.rehash(scene.scratch[0]);
  scene.layer.mark_codes_changed();
  scene.require_fresh_codes();
  const std::vector<ShardRows> fresh = scene.shard.touched_rows();
  REQUIRE(fresh[0].rows == stale[0].rows);
  for (std::size_t i = 0; i < fresh[0].codes.size(); ++i) {
    changed += fresh[0].codes[i] != stale[0].codes[i] ? 1 : 0;
  }
  REQUIRE(changed > 0);
  REQUIRE(std::all_of(fresh[0].stale_codes.begin(), fresh[0].stale_codes.end(),
                      [](std::uint8_t flag) { return flag == 0; }));
}

TEST_CASE("output shard: a commit and its base give the live rows to the bit", "[output_shard]") {
  for (const Sampling sampling : {Sampling::kLsh, Sampling::kRandom}) {
    ModelConfig config = test::small_config();
    config.sampling = sampling;
    ShardScene scene(config);
    LeaseGrant grant = test::initial_grant(config, test::lease_of(1));
    // As ShardScene loads them.
    std::fill(grant.label_counts.begin(), grant.label_counts.end(), 2u);
    test::StoredShard store;
    for (BatchIndex batch = 0; batch < 3; ++batch) {
      scene.train(2 * batch);
      scene.train(2 * batch + 1);
      const auto touched = scene.shard.rows().touched();
      const std::vector<SparseUpdate> parts = scene.commit();
      REQUIRE(parts.size() == 1);
      REQUIRE(parts[0].rows == touched);
      store.apply(config, grant, parts[0]);
      REQUIRE(scene.shard.rows().touched().empty());
      for (const auto& [index, row] : store.rows) {
        REQUIRE(same_bits(row.values, scene.row(index)));
        REQUIRE(row.state == scene.shard.rows().state(index));
        std::vector<std::uint32_t> codes(row.codes.size());
        scene.shard.codes().read(index, codes);
        REQUIRE(codes == row.codes);
      }
      if (sampling == Sampling::kLsh) scene.require_fresh_codes();
    }
  }
}

TEST_CASE("output shard: a row whose change rounds away is left out and put back",
          "[output_shard]") {
  ShardScene scene(test::small_config());
  std::vector<float> values = scene.row(7);
  std::vector<float> moved = values;
  for (float& value : moved) value += 1e-31F;
  values[3] = -0.0F;
  moved[3] = -1e-31F;
  scene.shard.load(7, values, 0.5F, {});
  scene.shard.load(8, values, 0.5F, {});
  const std::vector<std::uint32_t> codes(scene.config.tables, 3);
  scene.shard.load_touched(7, moved, 0.5F, codes, true);
  // An equal change with another state is news.
  scene.shard.load_touched(8, moved, 0.625F, codes, true);
  const auto parts = scene.commit();
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0].rows == std::vector<std::uint32_t>{8});
  REQUIRE(parts[0].levels.size() == scene.config.hidden);
  REQUIRE(parts[0].biases.size() == 1);
  REQUIRE(same_bits(scene.row(7), values));
  REQUIRE(parts[0].states[0] == 0.625F);
  scene.require_fresh_codes();
}

TEST_CASE("output shard: a commit without touched rows has one empty part", "[output_shard]") {
  ShardScene scene(test::small_config());
  const auto parts = scene.commit();
  REQUIRE(parts.size() == 1);
  REQUIRE(parts[0] == SparseUpdate{});
  REQUIRE(scene.shard.touched_rows() == std::vector<ShardRows>(1));
}

TEST_CASE("output shard: a large commit comes in parts of ascending rows", "[output_shard]") {
  ModelConfig config = test::small_config();
  config.hidden = 2048;
  config.sampling = Sampling::kAll;
  config.labels = 1500;
  config.output_shards = 2;
  ShardScene scene(config);
  scene.train(0);
  const auto hand_over = scene.shard.touched_rows();
  REQUIRE(hand_over.size() > 1);
  const auto parts = scene.commit();
  REQUIRE(parts.size() > 1);
  std::vector<std::uint32_t> rows;
  for (const SparseUpdate& part : parts) {
    REQUIRE(part.levels.size() == part.rows.size() * 2048);
    REQUIRE(part.levels.size() <= std::size_t{1} << 20);
    rows.insert(rows.end(), part.rows.begin(), part.rows.end());
  }
  REQUIRE(rows.size() == 750);
  REQUIRE(std::is_sorted(rows.begin(), rows.end()));
}

}  // namespace gleaner
