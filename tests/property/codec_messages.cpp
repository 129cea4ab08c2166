#include "tests/property/codec_messages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>

#include "common/limits.hpp"
#include "common/model/shard_rows.hpp"
#include "common/work/quantized_activations.hpp"
#include "schema/wire/codec.hpp"
#include "schema/wire/tables.hpp"

namespace gleaner::testing {
namespace {

// ---- Values ------------------------------------------------------------------------------------

std::uint32_t number(Rng& rng) {
  return static_cast<std::uint32_t>(rng.next());
}

std::size_t up_to(Rng& rng, std::uint64_t most) {
  return static_cast<std::size_t>(rng.next_below(most + 1));
}

float finite(Rng& rng) {
  while (true) {
    const float value = std::bit_cast<float>(number(rng));
    if (std::isfinite(value)) return value;
  }
}

std::string text(Rng& rng, std::size_t bytes_max) {
  static const char* const kCharacters[] = {
      "a", "Z", " ", "\"", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8c\xbe"};
  std::string result;
  for (std::size_t left = up_to(rng, bytes_max / 4); left > 0; --left) {
    result += kCharacters[rng.next_below(std::size(kCharacters))];
  }
  return result;
}

// Strictly ascending numbers below `bound`.
std::vector<std::uint32_t> ascending(Rng& rng, std::size_t count_max, std::uint64_t bound) {
  std::vector<std::uint32_t> numbers(up_to(rng, count_max));
  for (auto& n : numbers) n = static_cast<std::uint32_t>(rng.next_below(bound));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

ModelConfig model(Rng& rng) {
  ModelConfig config;
  config.data_fingerprint = rng.next();
  config.points = 1 + rng.next_below(1u << 30);
  config.features = static_cast<std::uint32_t>(1 + rng.next_below(kFeaturesMax));
  config.labels = static_cast<std::uint32_t>(1000 + rng.next_below(kLabelsMax - 1000));
  config.seed = rng.next();
  config.input_shards = static_cast<std::uint32_t>(1 + rng.next_below(8));
  config.hidden = config.input_shards * kLanes * static_cast<std::uint32_t>(1 + rng.next_below(9));
  config.output_shards = static_cast<std::uint32_t>(1 + rng.next_below(1000));
  config.epochs = static_cast<std::uint32_t>(1 + rng.next_below(100));
  config.batch_examples = static_cast<std::uint32_t>(
      1 + rng.next_below(std::min(kBatchExamplesMax, kBatchCellsMax / config.hidden)));
  config.staleness = static_cast<std::uint32_t>(rng.next_below(kStalenessMax));
  config.sampling = static_cast<Sampling>(rng.next_below(3));
  config.hash_bits = static_cast<std::uint32_t>(1 + rng.next_below(kHashBitsMax));
  config.gradient_step_log2 = -static_cast<std::int32_t>(rng.next_below(13));
  config.initial_fingerprint = rng.next();
  config.dropout = static_cast<float>(rng.next_below(90)) / 100.0F;
  config.feature_dropout = static_cast<float>(rng.next_below(90)) / 100.0F;
  config.divergence_factor = static_cast<float>(rng.chance(1, 2) ? 0 : 2 + rng.next_below(9));
  return config;
}

ShardRows rows(Rng& rng) {
  ShardRows result;
  result.rows = ascending(rng, 20, std::uint64_t{1} << 32);
  const std::size_t count = result.rows.size();
  result.values.resize(count * up_to(rng, 40));
  for (auto& value : result.values) value = finite(rng);
  result.states.resize(count);
  for (auto& state : result.states) state = std::fabs(finite(rng));
  result.codes.resize(count * up_to(rng, 8));
  const unsigned shift = static_cast<unsigned>(rng.next_below(32));
  for (auto& code : result.codes) code = number(rng) >> shift;
  if (rng.chance(1, 2)) {
    result.stale_codes.resize(count);
    for (auto& flag : result.stale_codes) flag = rng.chance(1, 2) ? 1 : 0;
  }
  return result;
}

Positives positives(Rng& rng, std::uint32_t examples) {
  Positives result;
  result.offsets = {0};
  for (std::uint32_t i = 0; i < examples; ++i) {
    const std::uint64_t bound = rng.chance(1, 2) ? kLabelsMax : 300;
    for (const std::uint32_t neuron : ascending(rng, 12, bound)) result.neurons.push_back(neuron);
    result.offsets.push_back(static_cast<std::uint32_t>(result.neurons.size()));
  }
  return result;
}

// ---- Fields that must agree --------------------------------------------------------------------

// Each changes what random fields alone would get wrong.
template <typename T>
void settle(Rng& /*rng*/, T& /*filled*/) {}

void settle(Rng& /*rng*/, IsIntroduction auto& filled) {
  if (filled.protocol_min > filled.protocol_max)
    std::swap(filled.protocol_min, filled.protocol_max);
}

void settle(Rng& rng, IsPart auto& filled) {
  filled.part = static_cast<std::uint32_t>(rng.next_below(filled.parts));
}

// Gives the entries ascending shards.
template <typename Entry, typename Shard>
void order(Rng& rng, std::vector<Entry>& entries, std::uint32_t shards_max, const Shard& shard_of) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::uint64_t step = shards_max / entries.size();
    shard_of(entries[i]) = ShardId{static_cast<std::uint32_t>(i * step + rng.next_below(step))};
  }
}

template <typename Unit>
void order_leases(Rng& rng, Unit& unit) {
  order(rng, unit.leases, kShardsMax, [](LeaseRef& lease) -> ShardId& { return lease.shard; });
}

template <typename Batch>
void order_batches(Rng& rng, std::vector<Batch>& batches) {
  const BatchIndex first = rng.next() >> 1;
  for (std::size_t i = 0; i < batches.size(); ++i) batches[i].batch = first + i;
}

void settle(Rng& rng, LeaseGrant& grant) {
  grant.base_chunks = static_cast<std::uint32_t>(up_to(rng, grant.chunks));
  grant.label_counts.resize(up_to(rng, 300));
  for (auto& count : grant.label_counts) count = number(rng) >> rng.next_below(32);
  if (!grant.is_held) return;
  grant.base_chunks = grant.chunks = 0;
  grant.label_counts.clear();
}

void settle(Rng& rng, ShardOffer& offer) {
  order(rng, offer.shards, kShardsMax, [](auto& s) -> ShardId& { return s.lease.shard; });
}

void settle(Rng& rng, UnitBatch& batch) {
  batch.positives = positives(rng, static_cast<std::uint32_t>(1 + rng.next_below(9)));
}

void settle(Rng& rng, TrainUnit& unit) {
  order_leases(rng, unit);
  order_batches(rng, unit.batches);
}

void settle(Rng& rng, ShardOutcome& outcome) {
  outcome.active = rng.next_below(kPairsPerBatchMax + 1);
  outcome.loss =
      outcome.active == 0 ? 0 : static_cast<std::int64_t>(rng.next() % (outcome.active << 20U));
}

void settle(Rng& rng, BatchResult& batch) {
  order(rng, batch.shards, kOutputShardsMax, [](auto& s) -> ShardId& { return s.shard; });
}

void settle(Rng& rng, UnitResult& result) {
  order_batches(rng, result.batches);
  if (!result.checks.empty()) result.checks.resize(result.batches.size());
}

void settle(Rng& rng, InputUnit& unit) {
  order_leases(rng, unit);
  for (InputStep& step : unit.steps) {
    const bool is_backward = step.kind == InputStep::Kind::kBackward;
    step.gradients.resize(is_backward ? unit.leases.size() : 0,
                          std::make_shared<const Bytes>(up_to(rng, 40), 7));
  }
}

void settle(Rng& /*rng*/, PointsRequest& request) {
  std::sort(request.points.begin(), request.points.end());
}

void settle(Rng& rng, Points& points) {
  std::sort(points.points.begin(), points.points.end());
  Positives features = positives(rng, static_cast<std::uint32_t>(points.points.size()));
  points.offsets = std::move(features.offsets);
  points.features = std::move(features.neurons);
  points.values.resize(points.features.size());
  for (float& value : points.values) value = finite(rng);
  const bool has_labels = rng.chance(1, 2);
  points.labels = positives(rng, has_labels ? static_cast<std::uint32_t>(points.points.size()) : 0);
}

void settle(Rng& rng, EvalUnit& unit) {
  order_leases(rng, unit);
}

void settle(Rng& rng, EvalResult& result) {
  for (std::size_t i = result.top_k == 0 ? 0 : up_to(rng, 9); i > 0; --i) {
    float score = std::fabs(finite(rng));
    for (std::uint32_t k = 0; k < result.top_k; ++k) {
      // Equal scores stand by ascending neuron.
      result.best.push_back({1000 * k + static_cast<std::uint32_t>(rng.next_below(1000)), score});
      if (rng.chance(1, 2)) score = std::nextafter(score, -1e30F);
    }
  }
}

void settle(Rng& rng, RelaySum& sum) {
  sum.units.resize(1 + up_to(rng, 20));
  for (auto& unit : sum.units) unit = {number(rng), UnitId{rng.next()}};
}

void settle(Rng& rng, ShardEntry& shard) {
  shard.chunks_sent = static_cast<std::uint32_t>(up_to(rng, shard.chunks));
}

void settle(Rng& rng, RunStatus& status) {
  for (ShardEntry& shard : status.shards) {
    const std::size_t place = up_to(rng, status.volunteers.size());
    shard.holder.reset();
    if (place > 0) shard.holder = static_cast<std::uint32_t>(place - 1);
  }
}

// ---- Any field ---------------------------------------------------------------------------------

// Fills structs by their tables, within the bounds that these give.
class FieldFiller {
 public:
  explicit FieldFiller(Rng& rng) : rng_(rng) {}

  template <typename T, typename Ways, typename... Bound>
  void operator()(const char* /*name*/, T& value, const Ways& /*ways*/, const Bound&... bound) {
    fill(value, bound...);
  }

  template <typename T>
  void fill(T& value) {
    if constexpr (std::is_floating_point_v<T>) {
      value = T{finite(rng_)};
    } else if constexpr (std::is_same_v<T, bool>) {
      value = rng_.chance(1, 2);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      value = static_cast<T>(rng_.next());
    } else if constexpr (kIsOptional<T>) {
      if (rng_.chance(1, 2)) fill(value.emplace());
    } else if constexpr (!IsData<T>) {
      fields(value, *this);
      settle(rng_, value);
    } else {
      if constexpr (std::is_same_v<T, Bytes>) value.resize(up_to(rng_, 300));
      for (auto& byte : value) fill(byte);
    }
  }

  void fill(SharedBytes& value) {
    Bytes bytes;
    fill(bytes);
    value = std::make_shared<const Bytes>(std::move(bytes));
  }

  void fill(ModelConfig& value) { value = model(rng_); }

  void fill(ShardRows& value) { value = rows(rng_); }

  void fill(SparseUpdate& value) { value = random_update(rng_); }

  void fill(std::string& value, std::size_t bytes_max) { value = text(rng_, bytes_max); }

  template <typename T, typename Bound>
  void fill(T& value, const Range<Bound>& range) {
    if constexpr (std::is_floating_point_v<T>) {
      value = std::clamp(std::fabs(finite(rng_)), range.least, range.most);
    } else {
      const auto least = static_cast<std::uint64_t>(range.least);
      value = static_cast<T>(least + up_to(rng_, static_cast<std::uint64_t>(range.most) - least));
    }
  }

  template <typename T>
  void fill(std::vector<T>& values, const Count& count) {
    values.resize(count.least + up_to(rng_, std::min<std::size_t>(count.most - count.least, 20)));
    for (T& value : values) fill(value);
  }

  // Left to settle().
  template <typename T, typename Pack, typename Unpack>
  void fill(T& /*value*/, const Packed<Pack, Unpack>& /*packed*/) {}

 private:
  Rng& rng_;
};

// Changes the number that stands at `place`, and counts them.
class NumberChanger {
 public:
  NumberChanger(Rng& rng, std::size_t place) : rng_(rng), place_(place) {}

  [[nodiscard]] std::size_t count() const { return count_; }

  template <typename T, typename Ways, typename... Bound>
  void operator()(const char* /*name*/, T& value, const Ways& /*ways*/, const Bound&... /*bound*/) {
    change(value);
  }

  template <typename T>
  void change(T& value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      if (count_++ == place_) value = other_than(value);
    } else if constexpr (kIsOptional<T>) {
      if (value) change(*value);
    } else if constexpr (kIsList<T>) {
      for (auto& entry : value) change(entry);
    } else if constexpr (requires { fields(value, *this); }) {
      fields(value, *this);
    }
  }

 private:
  template <typename T>
  T other_than(T value) {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int8_t>) {
      return value == 0 ? 1 : 0;  // levels of a commit have few values
    } else if constexpr (std::is_floating_point_v<T>) {
      return rng_.chance(1, 2) ? T{finite(rng_)} : value + 1;
    } else {
      const std::uint64_t old = static_cast<std::uint64_t>(value);
      const std::uint64_t others[] = {old + 1, old - 1, 0, rng_.next()};
      return static_cast<T>(others[rng_.next_below(std::size(others))]);
    }
  }

  Rng& rng_;
  const std::size_t place_;
  std::size_t count_ = 0;
};

template <typename T>
Message random_one(Rng& rng) {
  T message;
  FieldFiller(rng).fill(message);
  return message;
}

#define GLEANER_RANDOM_MESSAGE(type, ...) &random_one<type>,
constexpr std::array kRandomMessages = {GLEANER_MESSAGES(GLEANER_RANDOM_MESSAGE)};
#undef GLEANER_RANDOM_MESSAGE

}  // namespace

Message random_message(std::size_t kind, Rng& rng) {
  return kRandomMessages.at(kind)(rng);
}

void change_number(Message& message, Rng& rng) {
  const auto change = [&](std::size_t place) {
    NumberChanger changer(rng, place);
    std::visit([&](auto& own) { changer.change(own); }, message);
    return changer.count();
  };
  const std::size_t count = change(std::numeric_limits<std::size_t>::max());
  if (count > 0) change(rng.next_below(count));
}

SparseUpdate random_update(Rng& rng) {
  SparseUpdate update;
  update.rows = ascending(rng, 20, std::uint64_t{1} << 32);
  const std::size_t count = update.rows.size();
  update.scales.resize(count);
  for (auto& scale : update.scales) scale = std::min(std::fabs(finite(rng)), kDeltaScaleMax);
  update.levels.resize(count * up_to(rng, 40));
  for (auto& level : update.levels) {
    level = static_cast<std::int8_t>(static_cast<int>(rng.next_below(15)) - kDeltaLevelMax);
  }
  update.biases.resize(count * up_to(rng, 1));
  for (auto& bias : update.biases) bias = to_half(finite(rng));
  update.states.resize(count);
  for (auto& state : update.states) state = std::fabs(finite(rng));
  return update;
}

QuantizedActivations random_codes(std::uint32_t examples, std::uint32_t hidden, Rng& rng) {
  const std::uint32_t bits = 2 + (examples + hidden / 16) % 7;
  QuantizedActivations codes{examples, hidden, {}, {}, bits};
  const std::uint64_t on_of_16 = rng.next_below(17);
  for (std::uint32_t i = 0; i < examples; ++i) codes.scales.push_back(std::fabs(finite(rng)));
  for (std::size_t i = 0; i < std::size_t{examples} * hidden; ++i) {
    const bool is_on = rng.chance(on_of_16, 16);
    const std::uint64_t code = is_on ? 1 + rng.next_below(2 * code_max(bits)) : 0;
    codes.codes.push_back(static_cast<std::uint8_t>(code > code_max(bits) ? -(code / 2) : code));
  }
  return codes;
}

bool are_equal(const Message& a, const Message& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::equality_comparable<T>) {
          return x == std::get<T>(b);
        } else {
          return encode(a) == encode(b);
        }
      },
      a);
}

}  // namespace gleaner::testing
