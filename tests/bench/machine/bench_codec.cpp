#include <algorithm>

#include "common/counter_random.hpp"
#include "common/model/shard_rows.hpp"
#include "common/portable_math.hpp"
#include "common/train/input_layer.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "schema/wire/codec.hpp"
#include "tests/bench/machine/bench_loops.hpp"
#include "tests/bench/machine/bench_timing.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kCodecExamples = 256;
constexpr std::uint32_t kCommitRows = 1024;

struct Batch {
  QuantizedActivations codes;
  std::vector<std::int32_t> gradient;
};

Batch random_batch(std::uint32_t hidden) {
  Batch batch{{kCodecExamples, hidden, std::vector<float>(kCodecExamples, 0.01F), {}}, {}};
  Rng rng(3, Purpose::kTest);
  for (std::size_t i = 0; i < std::size_t{kCodecExamples} * hidden; ++i) {
    batch.codes.codes.push_back(
        rng.chance(1, 2) ? static_cast<std::uint8_t>(1 + rng.next_below(127)) : std::uint8_t{0});
    batch.gradient.push_back(static_cast<std::int32_t>(rng.next_below(4096)) - 2048);
  }
  return batch;
}

double per_example(double budget, const auto& body) {
  return best_seconds(budget, body) / kCodecExamples;
}

// Messages of the holders of input shards.
std::vector<BenchLine> bench_input_parts(const Batch& batch, const BenchShape& shape) {
  const std::uint32_t hidden = shape.hidden;
  const UnitColumns all{0, hidden};
  std::vector<float> activations;
  for (const std::uint8_t code : batch.codes.codes) activations.push_back(0.01F * code);
  const Bytes packed = pack_activations(kCodecExamples, hidden, all, activations);
  const Bytes packed_gradient = pack_unit_gradient(batch.codes, batch.gradient, all);
  QuantizedActivations codes = batch.codes;
  std::vector<std::int32_t> gradient = batch.gradient;
  ModelConfig config;
  config.hidden = hidden;
  ThreadPool pool(1);
  const ActivationQuantizer coder(config, pool);
  bool is_good = true;
  std::vector<BenchLine> lines;
  const auto add = [&](const char* name, const auto& body) {
    lines.push_back({name, "example", per_example(shape.budget, body), 0, ""});
  };
  add("pack activations",
      [&] { is_good &= !pack_activations(kCodecExamples, hidden, all, activations).empty(); });
  add("unpack activations", [&] {
    is_good &= unpack_activations(packed, kCodecExamples, hidden, all, activations).ok();
  });
  add("code activations", [&] {
    std::vector<float> units = activations;
    is_good &= coder.encode(units, {}).examples == kCodecExamples;
  });
  add("pack a unit gradient",
      [&] { is_good &= !pack_unit_gradient(batch.codes, batch.gradient, all).empty(); });
  add("unpack a unit gradient",
      [&] { is_good &= unpack_unit_gradient(packed_gradient, all, codes, gradient).ok(); });
  if (!is_good) lines.clear();
  return lines;
}

// Levels as training leaves them: small ones are the most, so that they compress.
std::vector<BenchLine> bench_commits(const BenchShape& shape) {
  Rng rng(4, Purpose::kTest);
  ShardCommit commit;
  SparseUpdate& update = commit.update;
  for (std::uint32_t row = 0; row < kCommitRows; ++row) {
    update.rows.push_back(row);
    update.scales.push_back(0.01F / kDeltaLevelMax);
    for (std::uint32_t i = 0; i < shape.hidden; ++i) {
      const auto level =
          static_cast<int>(rng.next_below(5) + rng.next_below(5) + rng.next_below(5));
      update.levels.push_back(static_cast<std::int8_t>(level - 6));
    }
    update.biases.push_back(to_half(0.01F * signed_unit(rng.next())));
    update.states.push_back(1);
  }
  const Message message = std::move(commit);
  const Bytes bytes = encode(message);
  bool is_good = true;
  const double encoded = best_seconds(shape.budget, [&] { is_good &= !encode(message).empty(); });
  const double decoded = best_seconds(shape.budget, [&] { is_good &= decode(bytes).ok(); });
  if (!is_good) return {};
  return {{"encode a commit", "row", encoded / kCommitRows, 0, ""},
          {"decode a commit", "row", decoded / kCommitRows, 0, ""}};
}

}  // namespace

std::vector<BenchLine> bench_codec(const BenchShape& shape) {
  const Batch batch = random_batch(shape.hidden);
  const auto& [codes, gradient] = batch;
  const Bytes packed_codes = pack(codes);
  const Bytes packed_gradient = pack_gradient(codes, gradient);
  std::vector<std::int32_t> sum(gradient.size());
  bool is_good = true;
  std::vector<BenchLine> lines;
  const auto add = [&](const char* name, const auto& body) {
    lines.push_back({name, "example", per_example(shape.budget, body), 0, ""});
  };
  add("pack hidden codes", [&] { is_good &= !pack(batch.codes).empty(); });
  add("unpack hidden codes", [&] { is_good &= unpack_quantized(packed_codes).ok(); });
  add("pack a gradient", [&] { is_good &= !pack_gradient(batch.codes, batch.gradient).empty(); });
  add("add a packed gradient", [&] {
    sum.assign(sum.size(), 0);
    is_good &= add_gradient(batch.codes, packed_gradient, sum).ok();
  });
  for (BenchLine& line : bench_input_parts(batch, shape)) lines.push_back(std::move(line));
  for (BenchLine& line : bench_commits(shape)) lines.push_back(std::move(line));
  if (!is_good) lines.clear();
  return lines;
}

}  // namespace gleaner
