// Bytes on the wire for typical batches, held to the limits of the design: at H = 128 at most 130
// down and 200 up for each example and volunteer.
#include <catch2/catch.hpp>
#include <cstdio>
#include <set>

#include "common/net/frame.hpp"
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "schema/wire/codec.hpp"
#include "tests/property/codec_messages.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kLabels = 52'946;
constexpr std::uint32_t kShardsHeld = 8;  // of 16

struct Shape {
  std::uint32_t batches;
  std::uint32_t examples;  // a batch
  std::uint32_t labels;    // an example, in the shards held
};

QuantizedActivations half_on(std::uint32_t examples, Rng& rng) {
  QuantizedActivations codes{examples, 128, std::vector<float>(examples, 0.01F), {}};
  for (std::size_t i = 0; i < std::size_t{examples} * 128; ++i) {
    codes.codes.push_back(rng.chance(1, 2) ? static_cast<std::uint8_t>(1 + rng.next_below(127))
                                           : 0);
  }
  return codes;
}

std::vector<LeaseRef> leases() {
  std::vector<LeaseRef> result;
  for (std::uint32_t i = 0; i < kShardsHeld; ++i) {
    result.push_back({ShardId{2 * i}, LeaseEpoch{100 + i}});
  }
  return result;
}

Positives positives(const Shape& shape, Rng& rng) {
  Positives result;
  result.offsets = {0};
  for (std::uint32_t i = 0; i < shape.examples; ++i) {
    std::set<std::uint32_t> neurons;
    while (neurons.size() < shape.labels) {
      neurons.insert(static_cast<std::uint32_t>(rng.next_below(kLabels)));
    }
    result.neurons.insert(result.neurons.end(), neurons.begin(), neurons.end());
    result.offsets.push_back(static_cast<std::uint32_t>(result.neurons.size()));
  }
  return result;
}

// Sums of eight uniform numbers: roughly normal, largest entries of 14 bits with their sign.
std::vector<std::int32_t> gradient(std::size_t cells, Rng& rng) {
  std::vector<std::int32_t> result(cells);
  for (auto& entry : result) {
    for (int k = 0; k < 8; ++k) entry += static_cast<std::int32_t>(rng.next_below(4096)) - 2048;
  }
  return result;
}

struct Sizes {
  double down;
  double up;
};

// Frames of a unit of an input shard that is the whole layer, and of its result, an example: the
// update by one batch and the activations of another.
Sizes input_sizes_for(std::uint32_t examples) {
  Rng rng(examples, Purpose::kTest);
  const QuantizedActivations codes = half_on(examples, rng);
  const UnitColumns columns{0, 128};
  const auto packed = std::make_shared<const Bytes>(
      pack_unit_gradient(codes, gradient(codes.codes.size(), rng), columns));
  const InputUnit unit{UnitId{1},
                       {{ShardId{16}, LeaseEpoch{100}}},
                       {{InputStep::Kind::kBackward, 1000, examples, 0.003F, {packed}},
                        {InputStep::Kind::kForward, 1002, examples, 0, {}}}};
  std::vector<float> activations(codes.codes.begin(), codes.codes.end());
  const InputResult result{
      UnitId{1}, {pack_activations(examples, 128, columns, activations)}, 1000};
  return {static_cast<double>(encode(unit).size() + kFrameHeaderBytes) / examples,
          static_cast<double>(encode(result).size() + kFrameHeaderBytes) / examples};
}

// Frames of a unit and of its result, an example.
Sizes sizes_for(const Shape& shape) {
  Rng rng(shape.batches, Purpose::kTest, shape.examples);
  TrainUnit unit{UnitId{1}, leases(), {}, true};
  UnitResult result{UnitId{1}, {}, 1000, false, {}};
  for (std::uint32_t i = 0; i < shape.batches; ++i) {
    const QuantizedActivations codes = half_on(shape.examples, rng);
    unit.batches.push_back(
        {1000 + i, std::make_shared<const Bytes>(pack(codes)), positives(shape, rng), 0.003F});
    BatchResult batch{1000 + i, {}, pack_gradient(codes, gradient(codes.codes.size(), rng))};
    for (const LeaseRef& lease : unit.leases) batch.shards.push_back({lease.shard, 1, 2, 3});
    result.batches.push_back(std::move(batch));
  }
  const double examples = static_cast<double>(shape.batches) * shape.examples;
  return {static_cast<double>(encode(unit).size() + kFrameHeaderBytes) / examples,
          static_cast<double>(encode(result).size() + kFrameHeaderBytes) / examples};
}

}  // namespace

TEST_CASE("codec: typical units and results stay within their bytes an example", "[codec]") {
  const Shape shapes[] = {{1, 128, 10}, {4, 256, 10}, {1, 128, 19}, {4, 256, 19}, {1, 256, 1}};
  for (const Shape& shape : shapes) {
    const Sizes sizes = sizes_for(shape);
    std::printf("%u x %u examples, %u labels each: %.1f bytes down, %.1f up\n", shape.batches,
                shape.examples, shape.labels, sizes.down, sizes.up);
    CHECK(sizes.down <= 130);
    CHECK(sizes.up <= 200);
  }
}

TEST_CASE("codec: units of the input layer take a bit for a unit that is off", "[codec]") {
  for (const std::uint32_t examples : {128u, 256u}) {
    const Sizes sizes = input_sizes_for(examples);
    std::printf("input layer, %u examples: %.1f bytes down, %.1f up\n", examples, sizes.down,
                sizes.up);
    CHECK(sizes.down <= 140);
    CHECK(sizes.up <= 280);
  }
}

TEST_CASE("codec: a commit's bytes are those of its levels", "[codec]") {
  SparseUpdate update;
  constexpr std::size_t kRows = 1000, kWidth = 128;
  for (std::uint32_t i = 0; i < kRows; ++i) update.rows.push_back(3 * i);
  update.scales.assign(kRows, 0.5F);
  update.levels.assign(kRows * kWidth, 3);
  update.biases.assign(kRows, 0x3c00);
  update.states.assign(kRows, 1.0F);
  const double bytes = static_cast<double>(encode_update(update).size()) / kRows;
  std::printf("a committed row of H = 128: %.1f bytes\n", bytes);
  CHECK(bytes <= kWidth / 2 + 3 * 4 + 2 + 1);
}

}  // namespace gleaner
