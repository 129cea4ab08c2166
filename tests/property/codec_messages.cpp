#include "tests/property/codec_messages.hpp"

#include <algorithm>
#include <cmath>

#include "common/limits.hpp"
#include "common/model/shard_rows.hpp"
#include "common/result.hpp"
#include "schema/quantized_batch.hpp"
#include "tests/property/random_pieces.hpp"

namespace gleaner::testing {
namespace {

ErrorCode error_code(Rng& rng) {
  return static_cast<ErrorCode>(1 + rng.next_below(15));
}

LeaseRef lease(Rng& rng) {
  return {ShardId{static_cast<std::uint32_t>(rng.next_below(kOutputShardsMax + kInputShardsMax))},
          LeaseEpoch{rng.next()}};
}

// Strictly ascending numbers below `bound`.
std::vector<std::uint32_t> ascending(Rng& rng, std::size_t count_max, std::uint64_t bound) {
  std::vector<std::uint32_t> numbers(up_to(rng, count_max));
  for (auto& n : numbers) n = static_cast<std::uint32_t>(rng.next_below(bound));
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<LeaseRef> leases(Rng& rng) {
  std::vector<LeaseRef> result;
  for (const std::uint32_t shard : ascending(rng, 20, kOutputShardsMax)) {
    result.push_back({ShardId{shard}, LeaseEpoch{rng.next()}});
  }
  if (result.empty()) result.push_back({ShardId{0}, LeaseEpoch{1}});
  return result;
}

Goodbye goodbye(Rng& rng) {
  Goodbye result{error_code(rng), text(rng, kSentenceBytesMax)};
  if (rng.chance(1, 2)) return result;
  SignedThanks& signed_thanks = result.thanks.emplace();
  signed_thanks.thanks = {{rng.next(), rng.next()},
                          rng.next(),
                          rng.next(),
                          static_cast<Checked>(rng.next_below(3)),
                          rng.chance(1, 2),
                          rng.next(),
                          text(rng, kNameBytesMax)};
  for (auto& byte : signed_thanks.master) byte = static_cast<std::uint8_t>(rng.next());
  for (auto& byte : signed_thanks.signature) byte = static_cast<std::uint8_t>(rng.next());
  return result;
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
  config.batch_examples = static_cast<std::uint32_t>(1 + rng.next_below(kBatchExamplesMax));
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

TrainUnit train_unit(Rng& rng) {
  TrainUnit unit{UnitId{rng.next()}, leases(rng), {}, rng.chance(1, 2), rng.chance(1, 2)};
  const BatchIndex first = rng.next() >> 1;
  for (BatchIndex i = 0; i < 1 + rng.next_below(5); ++i) {
    const auto examples = static_cast<std::uint32_t>(1 + rng.next_below(9));
    const QuantizedActivations codes = random_codes(examples, 32, rng);
    unit.batches.push_back({first + i, std::make_shared<const Bytes>(pack(codes)),
                            positives(rng, examples), static_cast<float>(rng.next_below(11))});
  }
  return unit;
}

UnitResult unit_result(Rng& rng) {
  UnitResult result{UnitId{rng.next()}, {}, rng.next(), rng.chance(1, 2)};
  const BatchIndex first = rng.next() >> 1;
  for (BatchIndex i = 0; i < 1 + rng.next_below(5); ++i) {
    BatchResult batch{first + i, {}, {}};
    for (const LeaseRef& held : leases(rng)) {
      const std::uint64_t active = rng.next_below(kPairsPerBatchMax + 1);
      const std::uint64_t loss = active == 0 ? 0 : rng.next() % (active << 20U);
      batch.shards.push_back({held.shard, rng.next(), static_cast<std::int64_t>(loss), active});
    }
    const QuantizedActivations codes = random_codes(3, 48, rng);
    std::vector<std::int32_t> gradient(codes.codes.size());
    for (auto& entry : gradient) entry = static_cast<std::int32_t>(number(rng)) >> 18;
    if (rng.chance(2, 3)) batch.gradient = pack_gradient(codes, gradient);
    result.batches.push_back(std::move(batch));
  }
  return result;
}

Bytes bytes(Rng& rng) {
  Bytes some(up_to(rng, 40));
  for (auto& byte : some) byte = static_cast<std::uint8_t>(rng.next());
  return some;
}

InputUnit input_unit(Rng& rng) {
  InputUnit unit{UnitId{rng.next()}, leases(rng), {}};
  for (std::size_t i = 1 + up_to(rng, 5); i > 0; --i) {
    InputStep step;
    step.kind = static_cast<InputStep::Kind>(rng.next_below(3));
    step.index = rng.next();
    step.examples = static_cast<std::uint32_t>(1 + rng.next_below(kBatchExamplesMax));
    step.rate = std::min(std::fabs(finite(rng)), kRateMax);
    for (std::size_t j = 0; step.kind == InputStep::Kind::kBackward && j < unit.leases.size();
         ++j) {
      step.gradients.push_back(std::make_shared<const Bytes>(bytes(rng)));
    }
    unit.steps.push_back(std::move(step));
  }
  return unit;
}

InputResult input_result(Rng& rng) {
  InputResult result{UnitId{rng.next()}, {}, rng.next()};
  for (std::size_t i = up_to(rng, 6); i > 0; --i) result.activations.push_back(bytes(rng));
  return result;
}

PointsRequest points_request(Rng& rng) {
  PointsRequest request{static_cast<PointSet>(rng.next_below(2)), {}};
  std::uint64_t point = 0;
  for (std::size_t i = 1 + up_to(rng, 9); i > 0; --i) {
    point += 1 + rng.next_below(1000);
    request.points.push_back(point);
  }
  return request;
}

Points points(Rng& rng) {
  const PointsRequest request = points_request(rng);
  Points points{request.set, request.points, {0}, {}, {}};
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    for (const std::uint32_t feature : ascending(rng, 8, kFeaturesMax)) {
      points.features.push_back(feature);
      points.values.push_back(finite(rng));
    }
    points.offsets.push_back(static_cast<std::uint32_t>(points.features.size()));
  }
  return points;
}

EvalUnit eval_unit(Rng& rng) {
  const QuantizedActivations codes = random_codes(5, 64, rng);
  return {UnitId{rng.next()}, leases(rng), static_cast<std::uint32_t>(1 + rng.next_below(kTopKMax)),
          std::make_shared<const Bytes>(pack(codes))};
}

EvalResult eval_result(Rng& rng) {
  EvalResult result;
  result.unit = UnitId{rng.next()};
  result.top_k = static_cast<std::uint32_t>(rng.next_below(8));
  result.compute_us = rng.next();
  for (std::size_t i = result.top_k == 0 ? 0 : up_to(rng, 9); i > 0; --i) {
    float score = std::fabs(finite(rng));
    for (std::uint32_t k = 0; k < result.top_k; ++k) {
      // Equal scores stand by ascending neuron.
      result.best.push_back({1000 * k + static_cast<std::uint32_t>(rng.next_below(1000)), score});
      if (rng.chance(1, 2)) score = std::nextafter(score, -1e30F);
    }
  }
  return result;
}

ShardOffer shard_offer(Rng& rng) {
  ShardOffer offer{number(rng), {}};
  for (const std::uint32_t shard : ascending(rng, 20, kOutputShardsMax)) {
    offer.shards.push_back({{ShardId{shard}, LeaseEpoch{rng.next()}}, {rng.next(), rng.next()}});
  }
  return offer;
}

Heartbeat heartbeat(Rng& rng) {
  Heartbeat beat{rng.next(), rng.next(), std::nullopt, text(rng, kSentenceBytesMax)};
  if (rng.chance(1, 2)) {
    beat.news = RunNews{number(rng), number(rng), number(rng),    number(rng),
                        number(rng), finite(rng), text(rng, 200), text(rng, 200)};
  }
  return beat;
}

Bytes some_bytes(Rng& rng) {
  Bytes bytes(up_to(rng, 300));
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.next());
  return bytes;
}

Message relay_message(std::size_t kind, Rng& rng) {
  switch (kind) {
    case 28: {
      const std::uint32_t low = number(rng) / 2;
      return RelayHello{low, low + number(rng) / 2, text(rng, kNameBytesMax),
                        text(rng, kNameBytesMax), text(rng, kInviteBytesMax)};
    }
    case 29:
      return RelayOpen{number(rng), text(rng, kNameBytesMax), {rng.next(), rng.next()}};
    case 30: {
      RelayFrame frame{number(rng), some_bytes(rng), {}};
      frame.parts.resize(up_to(rng, kBatchesPerUnitMax));
      for (auto& part : frame.parts) part = rng.next();
      return frame;
    }
    case 31:
      return RelayPart{rng.next(), std::make_shared<const Bytes>(some_bytes(rng))};
    case 32:
      return RelayClose{number(rng), text(rng, kSentenceBytesMax)};
    case 33: {
      RelaySum sum{rng.next(), rng.next(), {}, some_bytes(rng)};
      sum.units.resize(1 + up_to(rng, 20));
      for (auto& unit : sum.units) unit = {number(rng), UnitId{rng.next()}};
      return sum;
    }
    default:
      return RelaySplit{rng.next()};
  }
}

Message lease_message(std::size_t kind, Rng& rng) {
  const auto parts = static_cast<std::uint32_t>(1 + rng.next_below(kPartsMax));
  const auto part = static_cast<std::uint32_t>(rng.next_below(parts));
  switch (kind) {
    case 3: {
      LeaseGrant grant{lease(rng), number(rng), rng.next(), part, parts, {}, false};
      grant.label_counts.resize(up_to(rng, 300));
      for (auto& count : grant.label_counts) count = number(rng) >> rng.next_below(32);
      if (rng.chance(1, 3)) {
        grant.base_chunks = grant.chunks = 0;
        grant.label_counts.clear();
        grant.is_held = true;
      }
      return grant;
    }
    case 4:
      return ChunkRequest{lease(rng), part};
    case 5:
      return ShardChunk{lease(rng), part, rows(rng)};
    case 6:
      return ShardReady{lease(rng)};
    case 7:
      return ReleaseRequest{lease(rng)};
    case 8:
      return HandOver{lease(rng), number(rng), rng.next(), part, parts, rows(rng)};
    default:
      return Revoke{lease(rng)};
  }
}

}  // namespace

Message random_message(std::size_t kind, Rng& rng) {
  switch (kind) {
    case 0: {
      const std::uint32_t low = number(rng) / 2;
      return Hello{low,
                   low + number(rng) / 2,
                   text(rng, kNameBytesMax),
                   text(rng, kNameBytesMax),
                   number(rng),
                   rng.next(),
                   text(rng, kNameBytesMax),
                   std::fabs(finite(rng)),
                   text(rng, kInviteBytesMax),
                   number(rng),
                   rng.next(),
                   {{text(rng, kKernelNameBytesMax), rng.next()}, {"axpy", rng.next()}}};
    }
    case 1: {
      const auto beat = static_cast<std::uint32_t>(1 + rng.next_below(100'000));
      return Welcome{number(rng),
                     text(rng, kNameBytesMax),
                     model(rng),
                     beat,
                     beat + 7,
                     number(rng),
                     rng.next(),
                     LeaseEpoch{rng.next()},
                     text(rng, kNameBytesMax),
                     text(rng, kPurposeBytesMax)};
    }
    case 2:
      return Refusal{error_code(rng), text(rng, kSentenceBytesMax), rng.chance(1, 2)};
    case 10:
      return train_unit(rng);
    case 11:
      return unit_result(rng);
    case 12: {
      const auto parts = static_cast<std::uint32_t>(1 + rng.next_below(50));
      return ShardCommit{lease(rng), number(rng), parts - 1, parts, random_update(rng)};
    }
    case 13:
      return CommitCredit{std::max(1u, number(rng))};
    case 14:
      return eval_unit(rng);
    case 15:
      return eval_result(rng);
    case 16:
      return heartbeat(rng);
    case 17:
      return Leaving{text(rng, kSentenceBytesMax)};
    case 18:
      return goodbye(rng);
    case 19:
      return shard_offer(rng);
    case 20: {
      const std::uint32_t least = number(rng) / 2;
      return Observe{least, least + number(rng) / 2, text(rng, kNameBytesMax),
                     text(rng, kInviteBytesMax)};
    }
    case 21:
      return run_status(rng);
    case 22:
      return input_unit(rng);
    case 23:
      return input_result(rng);
    case 24:
      return points_request(rng);
    case 25:
      return points(rng);
    case 26:
      return access_answer(rng);
    case 27:
      return access_request(rng);
    default:
      return kind < 28 ? lease_message(kind, rng) : relay_message(kind, rng);
  }
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

}  // namespace gleaner::testing
