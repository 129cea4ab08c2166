#include "volunteer/train/input_layer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/check.hpp"
#include "common/counter_random.hpp"
#include "common/kernels/aligned_vector.hpp"
#include "common/run_plan.hpp"
#include "common/shard_map.hpp"
#include "volunteer/train/bounds.hpp"
#include "volunteer/train/feature_dropout.hpp"
#include "volunteer/train/feature_index.hpp"
#include "volunteer/train/input_kernels.hpp"
#include "volunteer/train/input_shard.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kRowsPerTask = 32;
// Keeps scales within what shards accept, whatever the features' values are.
constexpr float kHiddenValueMax = kHiddenScaleMax;
// A largest value below this is no signal, and its reciprocal would overflow.
constexpr float kHiddenValueMin = 1e-30F;
constexpr float kCodeMax = 255.0F;
// A gradient beyond this would turn the optimizer's state, and then the row, into infinities.
constexpr float kSquaresMax = 1e30F;

AddRows add_rows_for(SimdLevel level) {
#if defined(__x86_64__)
  if (level == SimdLevel::kAvx512) return add_rows_avx512;
  if (level == SimdLevel::kAvx2) return add_rows_avx2;
#endif
  (void)level;
  return add_rows_scalar;
}

// Rounds to nearest, ties to even, for values in [0, 2^22]: at 2^23 a float's last bit is worth 1.
std::uint8_t round_to_code(float value) {
  constexpr float kShift = 8388608.0F;
  return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value + kShift) & 0xffu);
}

// relu. Written so that a NaN, which only overflow can bring about, becomes zero.
void rectify(std::span<float> units) {
  for (float& unit : units) unit = unit > 0.0F ? std::min(unit, kHiddenValueMax) : 0.0F;
}

// Returns the scale: the largest value has code 255.
float quantise(std::span<const float> units, std::uint8_t* codes) {
  float largest = 0.0F;
  for (const float unit : units) largest = std::max(largest, unit);
  if (largest < kHiddenValueMin) {
    std::fill_n(codes, units.size(), std::uint8_t{0});
    return 0.0F;
  }
  const float codes_per_unit = kCodeMax / largest;
  for (std::size_t j = 0; j < units.size(); ++j)
    codes[j] = round_to_code(units[j] * codes_per_unit);
  return largest / kCodeMax;
}

}  // namespace

struct InputLayer::Impl {
  Impl(const ModelConfig& model, ThreadPool& threads, const Kernels& table)
      : config(model),
        map(model),
        plan(model),
        pool(threads),
        kernels(table),
        add_rows(add_rows_for(table.level)),
        keep_scale(1.0F / (1.0F - model.dropout)),
        feature_dropout(model),
        index(model.features),
        scratch(std::size_t{threads.threads()} * model.hidden) {
    shards.reserve(map.input_shards());
    for (std::uint32_t s = 0; s < map.input_shards(); ++s) {
      shards.emplace_back(config, map, map.input_shard(s), pool);
    }
  }

  InputShard& shard(ShardId id) {
    GLEANER_CHECK(!map.is_output(id) && raw(id) < map.shard_count());
    return shards[raw(id) - map.output_shards()];
  }

  std::span<float> scratch_of(unsigned worker) {
    return std::span(scratch).subspan(std::size_t{worker} * config.hidden, config.hidden);
  }

  void activate(const ExampleView& example, std::span<float> units) const;
  void drop_units(BatchIndex batch, std::size_t position, std::span<float> units) const;
  void unpack_gradient(const HiddenCodes& codes, std::span<const std::int32_t> gradient);
  void update_row(InputShard& shard, std::size_t indexed, const RmsRule& rule,
                  std::span<float> row_gradient);

  const ModelConfig config;
  const ShardMap map;
  const RunPlan plan;
  ThreadPool& pool;
  const Kernels& kernels;
  const AddRows add_rows;
  const float keep_scale;
  std::vector<InputShard> shards;
  FeatureDropout feature_dropout;
  FeatureIndex index;
  AlignedVector<float> scratch;        // H floats a worker
  AlignedVector<float> unit_gradient;  // examples x H: the loss's gradient before the relu
};

// relu(W x + b). The order in a column is the bias, then features ascending.
void InputLayer::Impl::activate(const ExampleView& example, std::span<float> units) const {
  const std::size_t known = FeatureIndex::known_features(example, config.features);
  for (const InputShard& shard : shards) {
    const auto own = units.subspan(shard.neurons().begin, shard.width());
    const float* bias = shard.weights() + std::size_t{config.features} * shard.width();
    std::copy_n(bias, shard.width(), own.begin());
    add_rows(shard.weights(), shard.width(), example.features.data(), example.values.data(), known,
             own.data(), shard.width());
  }
  rectify(units);
}

// Kept units are scaled up, so that evaluation needs no correction.
void InputLayer::Impl::drop_units(BatchIndex batch, std::size_t position,
                                  std::span<float> units) const {
  const auto threshold = static_cast<std::uint64_t>(config.dropout * 16777216.0F);
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    const std::uint64_t random =
        counter_random(config.seed, Purpose::kDropout, batch, position, unit) >> 40;
    units[unit] = random < threshold ? 0.0F : units[unit] * keep_scale;
  }
}

void InputLayer::Impl::unpack_gradient(const HiddenCodes& codes,
                                       std::span<const std::int32_t> gradient) {
  const float step = std::ldexp(1.0F, config.gradient_step_log2) * keep_scale;
  unit_gradient.resize(gradient.size());
  pool.parallel_for(codes.examples, [&](std::size_t example, unsigned) {
    const std::size_t begin = example * config.hidden;
    for (std::size_t i = begin; i < begin + config.hidden; ++i) {
      unit_gradient[i] = codes.codes[i] != 0 ? static_cast<float>(gradient[i]) * step : 0.0F;
    }
  });
}

void InputLayer::Impl::update_row(InputShard& shard, std::size_t indexed, const RmsRule& rule,
                                  std::span<float> row_gradient) {
  const std::uint32_t row = index.rows()[indexed];
  shard.keep_committed(row);
  const auto examples = index.examples_of(indexed);
  std::fill(row_gradient.begin(), row_gradient.end(), 0.0F);
  add_rows(unit_gradient.data() + shard.neurons().begin, config.hidden, examples.data(),
           index.values_of(indexed).data(), examples.size(), row_gradient.data(), shard.width());
  const float squares = kernels.sum_of_squares(row_gradient.data(), shard.width());
  if (!(squares < kSquaresMax)) return;
  kernels.rms_update(rule, squares, row_gradient.data(), shard.row(row), &shard.state(row),
                     shard.width());
}

InputLayer::InputLayer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels)
    : impl_(std::make_unique<Impl>(config, pool, kernels)) {}

InputLayer::~InputLayer() = default;

Result<void> InputLayer::load_rows(ShardId shard, const ShardRows& rows) {
  return impl_->shard(shard).load(rows);
}

HiddenCodes InputLayer::forward(std::span<const ExampleView> examples,
                                std::optional<BatchIndex> batch) {
  Impl& layer = *impl_;
  const std::uint32_t hidden = layer.config.hidden;
  if (batch) examples = layer.feature_dropout.apply(*batch, examples);
  HiddenCodes result;
  result.examples = static_cast<std::uint32_t>(examples.size());
  result.hidden = hidden;
  result.scales.resize(examples.size());
  result.codes.resize(examples.size() * hidden);
  layer.pool.parallel_for(examples.size(), [&](std::size_t e, unsigned worker) {
    const std::span<float> units = layer.scratch_of(worker);
    layer.activate(examples[e], units);
    if (batch && layer.config.dropout > 0.0F) layer.drop_units(*batch, e, units);
    result.scales[e] = quantise(units, result.codes.data() + e * hidden);
  });
  return result;
}

void InputLayer::backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                          const HiddenCodes& codes, std::span<const std::int32_t> gradient) {
  Impl& layer = *impl_;
  GLEANER_CHECK(codes.examples == examples.size() && codes.hidden == layer.config.hidden);
  GLEANER_CHECK(gradient.size() == codes.codes.size());
  if (layer.plan.sums_centroids(batch)) return;
  layer.unpack_gradient(codes, gradient);
  layer.index.build(layer.feature_dropout.apply(batch, examples));
  const std::span<const std::uint32_t> rows = layer.index.rows();
  for (InputShard& shard : layer.shards) shard.touch(rows);
  const RmsRule rule{.rate = rate,
                     .decay = layer.config.second_moment_decay,
                     .decay_complement = 1.0F - layer.config.second_moment_decay,
                     .first_share = kFirstShare,
                     .epsilon = layer.config.epsilon};
  const std::size_t tasks = (rows.size() + kRowsPerTask - 1) / kRowsPerTask;
  layer.pool.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    const std::size_t end = std::min(rows.size(), (task + 1) * kRowsPerTask);
    for (InputShard& shard : layer.shards) {
      const auto row_gradient = layer.scratch_of(worker).first(shard.width());
      for (std::size_t r = task * kRowsPerTask; r < end; ++r) {
        if (r + 2 < end) shard.prefetch(rows[r + 2]);
        layer.update_row(shard, r, rule, row_gradient);
      }
    }
  });
}

std::vector<SparseUpdate> InputLayer::commit(ShardId shard) {
  return impl_->shard(shard).commit(impl_->pool, impl_->kernels);
}

std::uint64_t InputLayer::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const InputShard& shard : impl_->shards) bytes += shard.memory_bytes();
  return bytes;
}

}  // namespace gleaner
