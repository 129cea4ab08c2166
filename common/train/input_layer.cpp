#include "common/train/input_layer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/model/row_checks.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/input_shard.hpp"
#include "common/train/prepared_examples.hpp"

namespace gleaner {
namespace {

// Below this the largest value is no signal, and its reciprocal would overflow.
constexpr float kHiddenValueMin = 1e-30F;

// Rounds to nearest, ties to even, for values within +-2^21: after adding 1.5 * 2^23, a float's
// last bit is worth 1, and its last byte is the value in two's complement.
std::uint8_t round_to_code(float value) {
  constexpr float kShift = 12582912.0F;
  return static_cast<std::uint8_t>(std::bit_cast<std::uint32_t>(value + kShift) & 0xffu);
}

// Returns the scale, at which the largest magnitude becomes `code_max`.
float quantise(std::span<const float> units, float code_max, std::uint8_t* codes) {
  float largest = 0.0F;
  for (const float unit : units) largest = std::max(largest, std::abs(unit));
  if (largest < kHiddenValueMin) {
    std::fill_n(codes, units.size(), std::uint8_t{0});
    return 0.0F;
  }
  const float codes_per_unit = code_max / largest;
  for (std::size_t j = 0; j < units.size(); ++j) {
    codes[j] = round_to_code(units[j] * codes_per_unit);
  }
  return largest / code_max;
}

constexpr std::size_t kRowsPerTask = 32;
static_assert(kActivationMax <= kHiddenScaleMax, "shards accept every scale");
// A larger gradient would turn the optimizer's state, and then the row, into infinities.
constexpr float kSquaresMax = 1e30F;

// Written so that a NaN, which only overflow can cause, becomes the lowest value.
void activate_units(HiddenUnits kind, std::span<float> units) {
  const float lowest = kind == HiddenUnits::kRelu ? 0.0F : -kActivationMax;
  for (float& unit : units) unit = unit > lowest ? std::min(unit, kActivationMax) : lowest;
}

}  // namespace

ActivationQuantizer::ActivationQuantizer(const ModelConfig& config, ThreadPool& pool)
    : pool_(pool),
      hidden_(config.hidden),
      seed_(config.seed),
      bits_(config.activation_bits),
      threshold_(static_cast<std::uint64_t>(config.dropout * 16777216.0F)),
      keep_scale_(1.0F / (1.0F - config.dropout)) {}

void ActivationQuantizer::drop_units(BatchIndex batch, std::size_t position,
                                     std::span<float> units) const {
  for (std::size_t unit = 0; unit < units.size(); ++unit) {
    const std::uint64_t random =
        counter_random(seed_, Purpose::kDropout, batch, position, unit) >> 40;
    units[unit] = random < threshold_ ? 0.0F : units[unit] * keep_scale_;
  }
}

float ActivationQuantizer::encode(std::span<float> units, std::optional<BatchIndex> batch,
                                  std::size_t position, std::uint8_t* codes) const {
  if (batch && threshold_ > 0) drop_units(*batch, position, units);
  return quantise(units, static_cast<float>(code_max(bits_)), codes);
}

QuantizedActivations ActivationQuantizer::room_for(std::size_t examples) const {
  return {static_cast<std::uint32_t>(examples), hidden_, std::vector<float>(examples),
          std::vector<std::uint8_t>(examples * hidden_), bits_};
}

QuantizedActivations ActivationQuantizer::encode(std::span<float> activations,
                                                 std::optional<BatchIndex> batch) const {
  GLEANER_CHECK(activations.size() % hidden_ == 0);
  QuantizedActivations result = room_for(activations.size() / hidden_);
  pool_.parallel_for(result.examples, [&](std::size_t e, unsigned /*worker*/) {
    result.scales[e] = encode(activations.subspan(e * hidden_, hidden_), batch, e,
                              result.codes.data() + e * hidden_);
  });
  return result;
}

struct InputLayer::Impl {
  Impl(const ModelConfig& model, ThreadPool& threads, const Kernels& table)
      : config(model),
        map(model),
        plan(model),
        pool(threads),
        kernels(table),
        coder(model, threads),
        feature_dropout(model),
        index(model.features),
        scratch(threads.threads() * kRowsPerStep * model.hidden) {}

  InputShard& shard(ShardId id) {
    const auto held = shards.find(id);
    GLEANER_CHECK(held != shards.end());
    return held->second;
  }

  void list_all() {
    all.clear();
    for (auto& [id, shard] : shards) all.push_back(&shard);
  }

  // Valid until the next call.
  std::span<InputShard* const> chosen(std::span<const ShardId> ids) {
    some.clear();
    for (const ShardId id : ids) some.push_back(&shard(id));
    return some;
  }

  std::span<float> scratch_of(unsigned worker) {
    const std::size_t size = kRowsPerStep * config.hidden;
    return std::span(scratch).subspan(worker * size, size);
  }

  // Writes the units of `held`.
  void activate(std::span<InputShard* const> held, const ExampleView& example,
                std::span<float> units) const;
  // Unpacks the gradient of the units of `held`.
  void unpack_gradient(std::span<InputShard* const> held, const QuantizedActivations& codes,
                       std::span<const std::int32_t> gradient);
  void backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                std::span<InputShard* const> held);
  // Updates at most kRowsPerStep rows of the index; `gradients` has room for their gradients.
  void update_rows(InputShard& shard, std::size_t first, std::size_t count, const RmsRule& rule,
                   std::span<float> gradients);

  const ModelConfig config;
  const ShardMap map;
  const RunPlan plan;
  ThreadPool& pool;
  const Kernels& kernels;
  const ActivationQuantizer coder;
  std::map<ShardId, InputShard> shards;  // the held shards
  std::uint32_t commits_kept = 0;        // by each
  std::vector<InputShard*> all;          // of these, ascending
  std::vector<InputShard*> some;         // that a call is about
  FeatureDropout feature_dropout;
  FeatureIndex index;
  AlignedVector<float> scratch;        // kRowsPerStep x H floats a worker
  AlignedVector<float> unit_gradient;  // examples x H: the loss's gradient before the activation
};

// W x + b, with negative values set to 0 where units are ReLU. Each column adds the bias, then the
// features in ascending order.
void InputLayer::Impl::activate(std::span<InputShard* const> held, const ExampleView& example,
                                std::span<float> units) const {
  const std::size_t known = FeatureIndex::known_features(example, config.features);
  for (const InputShard* shard : held) {
    const auto own = units.subspan(shard->neurons().begin, shard->width());
    const float* bias = shard->weights() + std::size_t{config.features} * shard->width();
    std::copy_n(bias, shard->width(), own.begin());
    kernels.add_rows(shard->weights(), shard->width(), example.features.data(),
                     example.values.data(), known, own.data(), shard->width());
    activate_units(config.hidden_units, own);
  }
}

void InputLayer::Impl::unpack_gradient(std::span<InputShard* const> held,
                                       const QuantizedActivations& codes,
                                       std::span<const std::int32_t> gradient) {
  const float step = std::ldexp(1.0F, config.gradient_step_log2) * coder.keep_scale();
  unit_gradient.resize(gradient.size());
  pool.parallel_for(codes.examples, [&](std::size_t example, unsigned) {
    for (const InputShard* shard : held) {
      const std::size_t begin = example * config.hidden + shard->neurons().begin;
      for (std::size_t i = begin; i < begin + shard->width(); ++i) {
        unit_gradient[i] = codes.codes[i] != 0 ? static_cast<float>(gradient[i]) * step : 0.0F;
      }
    }
  });
}

void InputLayer::Impl::update_rows(InputShard& shard, std::size_t first, std::size_t count,
                                   const RmsRule& rule, std::span<float> gradients) {
  const std::size_t width = shard.width();
  std::array<float, kRowsPerStep> squares{};
  std::array<float, kRowsPerStep> states{};
  std::array<float, kRowsPerStep> factors{};
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t row = index.rows()[first + i];
    shard.prefetch(row);
    const std::span<float> gradient = gradients.subspan(i * width, width);
    const auto examples = index.examples_of(first + i);
    std::fill(gradient.begin(), gradient.end(), 0.0F);
    kernels.add_rows(unit_gradient.data() + shard.neurons().begin, config.hidden, examples.data(),
                     index.values_of(first + i).data(), examples.size(), gradient.data(), width);
    squares[i] = kernels.sum_of_squares(gradient.data(), width);
    states[i] = shard.state(row);
  }
  kernels.rms_steps(rule, squares.data(), width, states.data(), factors.data());
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t row = index.rows()[first + i];
    shard.keep_committed(row);
    if (!(squares[i] < kSquaresMax)) continue;
    shard.state(row) = states[i];
    kernels.axpy(factors[i], gradients.data() + i * width, shard.row(row), width);
  }
}

InputLayer::InputLayer(const ModelConfig& config, ThreadPool& pool, const Kernels& kernels)
    : InputLayer(config, pool, NoShards{}, kernels) {
  for (std::uint32_t s = 0; s < impl_->map.input_shards(); ++s) hold(impl_->map.input_shard(s));
}

InputLayer::InputLayer(const ModelConfig& config, ThreadPool& pool, NoShards none,
                       const Kernels& kernels)
    : impl_(std::make_unique<Impl>(config, pool, kernels)) {
  impl_->commits_kept = none.commits_kept;
}

InputLayer::~InputLayer() = default;

void InputLayer::hold(ShardId shard) {
  impl_->shards.erase(shard);
  impl_->list_all();  // in case the allocation of the new shard fails
  impl_->shards.try_emplace(shard, impl_->config, impl_->map, shard, impl_->pool,
                            impl_->commits_kept);
  impl_->list_all();
}

void InputLayer::drop(ShardId shard) {
  impl_->shards.erase(shard);
  impl_->list_all();
}

Result<void> InputLayer::load_rows(ShardId shard, const ShardRows& rows) {
  return impl_->shard(shard).load(rows);
}

Result<void> InputLayer::load_touched_rows(ShardId shard, const ShardRows& rows) {
  return impl_->shard(shard).load_touched(rows);
}

std::vector<ShardRows> InputLayer::touched_rows(ShardId shard) const {
  return impl_->shard(shard).touched_rows();
}

bool InputLayer::step_back(ShardId shard, std::uint32_t commits) {
  return impl_->shard(shard).step_back(commits);
}

ShardDigest InputLayer::digest(ShardId shard) const {
  return impl_->shard(shard).digest(impl_->pool);
}

std::vector<float> InputLayer::activations(std::span<const ExampleView> examples,
                                           std::optional<BatchIndex> batch,
                                           std::span<const ShardId> shards) {
  Impl& layer = *impl_;
  const std::span<InputShard* const> held = layer.chosen(shards);
  if (batch) examples = layer.feature_dropout.apply(*batch, examples);
  std::vector<float> result(examples.size() * layer.config.hidden);
  layer.pool.parallel_for(examples.size(), [&](std::size_t e, unsigned worker) {
    // Aligned, as the kernels want it.
    const std::span<float> units = layer.scratch_of(worker).first(layer.config.hidden);
    layer.activate(held, examples[e], units);
    std::copy(units.begin(), units.end(),
              result.begin() + static_cast<std::ptrdiff_t>(e * units.size()));
  });
  return result;
}

QuantizedActivations InputLayer::forward(std::span<const ExampleView> examples,
                                         std::optional<BatchIndex> batch) {
  Impl& layer = *impl_;
  const std::uint32_t hidden = layer.config.hidden;
  if (batch) examples = layer.feature_dropout.apply(*batch, examples);
  QuantizedActivations result = layer.coder.room_for(examples.size());
  layer.pool.parallel_for(examples.size(), [&](std::size_t e, unsigned worker) {
    const std::span<float> units = layer.scratch_of(worker).first(layer.config.hidden);
    layer.activate(layer.all, examples[e], units);
    result.scales[e] = layer.coder.encode(units, batch, e, result.codes.data() + e * hidden);
  });
  return result;
}

void InputLayer::backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                          const QuantizedActivations& codes,
                          std::span<const std::int32_t> gradient) {
  impl_->backward(batch, rate, examples, codes, gradient, impl_->all);
}

void InputLayer::backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                          const QuantizedActivations& codes, std::span<const std::int32_t> gradient,
                          std::span<const ShardId> shards) {
  impl_->backward(batch, rate, examples, codes, gradient, impl_->chosen(shards));
}

void InputLayer::Impl::backward(BatchIndex batch, float rate, std::span<const ExampleView> examples,
                                const QuantizedActivations& codes,
                                std::span<const std::int32_t> gradient,
                                std::span<InputShard* const> held) {
  GLEANER_CHECK(codes.examples == examples.size() && codes.hidden == config.hidden);
  GLEANER_CHECK(gradient.size() == codes.codes.size());
  unpack_gradient(held, codes, gradient);
  index.build(feature_dropout.apply(batch, examples));
  const std::span<const std::uint32_t> rows = index.rows();
  for (InputShard* shard : held) shard->touch(rows);
  const RmsRule rule{.rate = rate,
                     .decay = config.second_moment_decay,
                     .decay_complement = 1.0F - config.second_moment_decay,
                     .first_fraction = kFirstFraction,
                     .epsilon = config.epsilon};
  const std::size_t tasks = (rows.size() + kRowsPerTask - 1) / kRowsPerTask;
  pool.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
    const std::size_t end = std::min(rows.size(), (task + 1) * kRowsPerTask);
    for (InputShard* shard : held) {
      for (std::size_t r = task * kRowsPerTask; r < end; r += kRowsPerStep) {
        update_rows(*shard, r, std::min(end - r, kRowsPerStep), rule, scratch_of(worker));
      }
    }
  });
}

std::vector<SparseUpdate> InputLayer::commit(ShardId shard) {
  return impl_->shard(shard).commit(impl_->pool, impl_->kernels);
}

std::uint64_t InputLayer::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, shard] : impl_->shards) bytes += shard.memory_bytes();
  return bytes;
}

}  // namespace gleaner
