#include "tests/property/codec_messages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/check.hpp"
#include "common/limits.hpp"
#include "common/model/row_delta.hpp"
#include "schema/gradient.hpp"

namespace gleaner::testing {
namespace {

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

RunStatus run_status(Rng& rng) {
  RunStatus status;
  status.protocol = number(rng);
  status.build = text(rng, kNameBytesMax);
  status.run = text(rng, kNameBytesMax);
  status.life = rng.next();
  status.stage = static_cast<RunStage>(rng.next_below(5));
  status.round = number(rng);
  status.rounds = number(rng);
  status.batch = rng.next();
  status.batches = rng.next();
  status.epoch = number(rng);
  status.epochs = number(rng);
  status.staleness = number(rng);
  for (float* value : {&status.examples_per_second, &status.eta_seconds, &status.loss,
                       &status.active, &status.precision_at_1}) {
    *value = finite(rng);
  }
  status.wait_owner = static_cast<WaitOwner>(rng.next_below(5));
  status.is_held_up = rng.chance(1, 2);
  status.waits_for = text(rng, kSentenceBytesMax);
  status.waits_us = rng.next();
  status.store_bytes = rng.next();
  status.free_bytes = rng.next();
  status.volunteers_here = number(rng);
  status.volunteers.resize(up_to(rng, 5));
  for (VolunteerEntry& v : status.volunteers) {
    v = {text(rng, kNameBytesMax),
         text(rng, kNameBytesMax),
         rng.chance(1, 2),
         rng.chance(1, 2),
         number(rng),
         finite(rng),
         static_cast<std::int64_t>(rng.next()),
         rng.next(),
         number(rng),
         rng.chance(1, 2),
         rng.next(),
         text(rng, kSentenceBytesMax)};
  }
  status.shards.resize(up_to(rng, 9));
  status.input_shards = static_cast<std::uint32_t>(up_to(rng, status.shards.size()));
  for (ShardEntry& s : status.shards) {
    s.state = static_cast<LeaseState>(rng.next_below(4));
    const std::size_t place = up_to(rng, status.volunteers.size());
    if (place > 0) s.holder = static_cast<std::uint32_t>(place - 1);
    s.since_us = rng.next();
    s.committed = number(rng);
    s.next_batch = rng.next();
    s.chunks = static_cast<std::uint32_t>(rng.next_below(kPartsMax));
    s.chunks_sent = static_cast<std::uint32_t>(rng.next_below(s.chunks + 1));
    s.held_before = text(rng, kNameBytesMax);
    s.moved_why = text(rng, kSentenceBytesMax);
  }
  status.gone.resize(up_to(rng, kDeparturesMax));
  for (DepartureEntry& d : status.gone) {
    d = {text(rng, kNameBytesMax), text(rng, kSentenceBytesMax), rng.next(), number(rng)};
  }
  return status;
}

TrainUnit train_unit(Rng& rng) {
  TrainUnit unit{UnitId{rng.next()}, leases(rng), {}, rng.chance(1, 2)};
  const BatchIndex first = rng.next() >> 1;
  for (BatchIndex i = 0; i < 1 + rng.next_below(5); ++i) {
    const auto examples = static_cast<std::uint32_t>(1 + rng.next_below(9));
    const HiddenCodes codes = random_codes(examples, 32, rng);
    unit.batches.push_back({first + i, std::make_shared<const Bytes>(pack(codes)),
                            positives(rng, examples), static_cast<float>(rng.next_below(11))});
  }
  return unit;
}

UnitResult unit_result(Rng& rng) {
  UnitResult result{UnitId{rng.next()}, {}, rng.next()};
  const BatchIndex first = rng.next() >> 1;
  for (BatchIndex i = 0; i < 1 + rng.next_below(5); ++i) {
    BatchResult batch{first + i, {}, {}};
    for (const LeaseRef& held : leases(rng)) {
      const auto loss = static_cast<std::int64_t>(rng.next());
      batch.shards.push_back({held.shard, rng.next(), loss, rng.next()});
    }
    const HiddenCodes codes = random_codes(3, 48, rng);
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
  const HiddenCodes codes = random_codes(5, 64, rng);
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

AccessRequest access_request(Rng& rng) {
  const std::uint32_t least = number(rng) / 2;
  AccessRequest request;
  request.protocol_min = least;
  request.protocol_max = least + number(rng) / 2;
  request.build = text(rng, kNameBytesMax);
  request.invite = text(rng, kInviteBytesMax);
  request.verb = static_cast<AccessVerb>(rng.next_below(7));
  request.subject = text(rng, kNameBytesMax);
  request.role = static_cast<Role>(rng.next_below(3));
  request.is_trusted = rng.chance(1, 2);
  request.is_reusable = rng.chance(1, 2);
  request.expires_s = rng.next();
  request.label = text(rng, kNameBytesMax);
  return request;
}

AccessAnswer access_answer(Rng& rng) {
  AccessAnswer answer;
  answer.protocol = number(rng);
  answer.sentence = text(rng, kSentenceBytesMax);
  for (std::uint64_t i = rng.next_below(3); i > 0; --i) {
    answer.invites.push_back({text(rng, kNameBytesMax), static_cast<Role>(rng.next_below(3)),
                              rng.chance(1, 2), rng.chance(1, 2), text(rng, kNameBytesMax),
                              rng.next(), rng.next(), text(rng, kSentenceBytesMax),
                              text(rng, kNameBytesMax)});
  }
  for (std::uint64_t i = rng.next_below(3); i > 0; --i) {
    answer.peers.push_back({text(rng, kNameBytesMax), text(rng, kNameBytesMax),
                            text(rng, kNameBytesMax), text(rng, kNameBytesMax), rng.chance(1, 2),
                            rng.chance(1, 2), rng.chance(1, 2), text(rng, kNameBytesMax)});
  }
  return answer;
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
                   rng.next()};
    }
    case 1: {
      const auto beat = static_cast<std::uint32_t>(1 + rng.next_below(100'000));
      return Welcome{number(rng), text(rng, kNameBytesMax), model(rng), beat, beat + 7, number(rng),
                     rng.next()};
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
      return Goodbye{error_code(rng), text(rng, kSentenceBytesMax)};
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
      return lease_message(kind, rng);
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

HiddenCodes random_codes(std::uint32_t examples, std::uint32_t hidden, Rng& rng) {
  HiddenCodes codes{examples, hidden, {}, {}};
  const std::uint64_t on_of_16 = rng.next_below(17);
  for (std::uint32_t i = 0; i < examples; ++i) codes.scales.push_back(std::fabs(finite(rng)));
  for (std::size_t i = 0; i < std::size_t{examples} * hidden; ++i) {
    const bool is_on = rng.chance(on_of_16, 16);
    codes.codes.push_back(is_on ? static_cast<std::uint8_t>(1 + rng.next_below(255)) : 0);
  }
  return codes;
}

bool are_equal(const Message& a, const Message& b) {
  if (a.index() != b.index()) return false;
  if (const auto* x = std::get_if<TrainUnit>(&a)) {
    const auto& y = std::get<TrainUnit>(b);
    const auto same_batch = [](const UnitBatch& m, const UnitBatch& n) {
      return m.batch == n.batch && *m.hidden == *n.hidden && m.positives == n.positives;
    };
    return x->unit == y.unit && x->leases == y.leases && x->wants_gradient == y.wants_gradient &&
           std::equal(x->batches.begin(), x->batches.end(), y.batches.begin(), y.batches.end(),
                      same_batch);
  }
  if (const auto* x = std::get_if<EvalUnit>(&a)) {
    const auto& y = std::get<EvalUnit>(b);
    return x->unit == y.unit && x->leases == y.leases && x->top_k == y.top_k &&
           *x->hidden == *y.hidden;
  }
  if (const auto* x = std::get_if<InputUnit>(&a)) {
    const auto& y = std::get<InputUnit>(b);
    const auto same_bytes = [](const SharedBytes& m, const SharedBytes& n) { return *m == *n; };
    const auto same_step = [&](const InputStep& m, const InputStep& n) {
      return m.kind == n.kind && m.index == n.index && m.examples == n.examples &&
             m.rate == n.rate &&
             std::equal(m.gradients.begin(), m.gradients.end(), n.gradients.begin(),
                        n.gradients.end(), same_bytes);
    };
    return x->unit == y.unit && x->leases == y.leases &&
           std::equal(x->steps.begin(), x->steps.end(), y.steps.begin(), y.steps.end(), same_step);
  }
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        if constexpr (std::is_same_v<T, TrainUnit> || std::is_same_v<T, EvalUnit> ||
                      std::is_same_v<T, InputUnit>) {
          return false;  // compared above
        } else {
          return x == std::get<T>(b);
        }
      },
      a);
}

}  // namespace gleaner::testing
