// Training and evaluation units and their results.
#include <utility>

#include "schema/compact_lists.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

void check_batch_count(std::size_t count) {
  if (count == 0 || count > kBatchesPerUnitMax) {
    malformed("batches", "{} entries, must be 1 to {}", count, kBatchesPerUnitMax);
  }
}

float read_rate(float rate) {
  // Written so that a NaN fails.
  if (!(rate >= 0.0F && rate <= kRateMax)) {
    malformed("batches.outputRate", "{} is not between 0 and {}", rate, kRateMax);
  }
  return rate;
}

// Batches of a unit follow each other without gaps.
template <typename Batch>
void check_follows(const std::vector<Batch>& batches, BatchIndex next) {
  if (batches.empty()) return;
  const BatchIndex last = batches.back().batch;
  if (next == 0 || next - 1 != last) malformed("batches", "batch {} after batch {}", next, last);
}

void write(const ShardOutcome& from, wire::ShardOutcome::Builder to) {
  to.setShard(raw(from.shard));
  to.setGradientDigest(from.gradient_digest);
  to.setLoss(from.loss);
  to.setActive(from.active);
}

std::vector<ShardOutcome> read(capnp::List<wire::ShardOutcome>::Reader from) {
  if (from.size() == 0 || from.size() > kOutputShardsMax) {
    malformed("batches.shards", "{} entries, must be 1 to {}", from.size(), kOutputShardsMax);
  }
  std::vector<ShardOutcome> to;
  to.reserve(from.size());
  for (const auto outcome : from) {
    const ShardId shard{outcome.getShard()};
    if (raw(shard) >= kOutputShardsMax || (!to.empty() && to.back().shard >= shard)) {
      malformed("batches.shards", "shard {} is out of range or order", raw(shard));
    }
    const std::uint64_t active = outcome.getActive();
    const std::int64_t loss = outcome.getLoss();
    if (active > kPairsPerBatchMax) {
      malformed("batches.shards.active", "{} is out of range", active);
    }
    if (loss < 0 || static_cast<std::uint64_t>(loss) >> kPairLossBits > active) {
      malformed("batches.shards.loss", "{} is out of range for {} active neurons", loss, active);
    }
    to.push_back({shard, outcome.getGradientDigest(), loss, active});
  }
  return to;
}

bool is_before(const ScoredNeuron& a, const ScoredNeuron& b) {
  return a.score > b.score || (a.score == b.score && a.neuron < b.neuron);
}

}  // namespace

void write(const TrainUnit& from, wire::TrainUnit::Builder to) {
  to.setUnit(raw(from.unit));
  write(from.leases, to.initLeases(length(from.leases.size())));
  auto batches = to.initBatches(length(from.batches.size()));
  for (std::size_t i = 0; i < from.batches.size(); ++i) {
    auto batch = batches[length(i)];
    batch.setBatch(from.batches[i].batch);
    GLEANER_CHECK(from.batches[i].hidden != nullptr);
    batch.setHidden(data_of(*from.batches[i].hidden));
    batch.setPositives(data_of(pack_positives(from.batches[i].positives)));
    batch.setOutputRate(from.batches[i].output_rate);
  }
  to.setWantsGradient(from.wants_gradient);
  to.setMayBeSummed(from.may_be_summed);
}

TrainUnit read(wire::TrainUnit::Reader from) {
  TrainUnit to;
  to.unit = UnitId{from.getUnit()};
  to.leases = read_leases(from.getLeases());
  const auto batches = from.getBatches();
  check_batch_count(batches.size());
  to.batches.reserve(batches.size());
  for (const auto batch : batches) {
    check_follows(to.batches, batch.getBatch());
    const ByteView hidden = view(batch.getHidden());
    to.batches.push_back({batch.getBatch(),
                          std::make_shared<const Bytes>(hidden.begin(), hidden.end()),
                          unpack_positives("batches.positives", view(batch.getPositives())),
                          read_rate(batch.getOutputRate())});
  }
  to.wants_gradient = from.getWantsGradient();
  to.may_be_summed = from.getMayBeSummed();
  return to;
}

void write(const UnitResult& from, wire::UnitResult::Builder to) {
  to.setUnit(raw(from.unit));
  auto batches = to.initBatches(length(from.batches.size()));
  for (std::size_t i = 0; i < from.batches.size(); ++i) {
    auto batch = batches[length(i)];
    const BatchResult& result = from.batches[i];
    batch.setBatch(result.batch);
    auto shards = batch.initShards(length(result.shards.size()));
    for (std::size_t j = 0; j < result.shards.size(); ++j) {
      write(result.shards[j], shards[length(j)]);
    }
    batch.setGradient(data_of(result.gradient));
  }
  to.setComputeUs(from.compute_us);
  to.setIsSummed(from.is_summed);
}

UnitResult read(wire::UnitResult::Reader from) {
  UnitResult to;
  to.unit = UnitId{from.getUnit()};
  const auto batches = from.getBatches();
  check_batch_count(batches.size());
  to.batches.reserve(batches.size());
  for (const auto batch : batches) {
    check_follows(to.batches, batch.getBatch());
    const ByteView gradient = view(batch.getGradient());
    to.batches.push_back(
        {batch.getBatch(), read(batch.getShards()), Bytes(gradient.begin(), gradient.end())});
  }
  to.compute_us = from.getComputeUs();
  to.is_summed = from.getIsSummed();
  return to;
}

void write(const EvalUnit& from, wire::EvalUnit::Builder to) {
  to.setUnit(raw(from.unit));
  write(from.leases, to.initLeases(length(from.leases.size())));
  to.setTopK(from.top_k);
  GLEANER_CHECK(from.hidden != nullptr);
  to.setHidden(data_of(*from.hidden));
  to.setFirst(from.first);
}

EvalUnit read(wire::EvalUnit::Reader from) {
  EvalUnit to;
  to.unit = UnitId{from.getUnit()};
  to.leases = read_leases(from.getLeases());
  to.top_k = from.getTopK();
  if (to.top_k == 0 || to.top_k > kTopKMax) {
    malformed("top_k", "{}, must be 1 to {}", to.top_k, kTopKMax);
  }
  const ByteView hidden = view(from.getHidden());
  to.hidden = std::make_shared<const Bytes>(hidden.begin(), hidden.end());
  to.first = from.getFirst();
  return to;
}

void write(const EvalResult& from, wire::EvalResult::Builder to) {
  to.setUnit(raw(from.unit));
  to.setTopK(from.top_k);
  const std::size_t bytes = from.best.size() * 4;
  auto neurons = to.initNeurons(length(bytes));
  auto scores = to.initScores(length(bytes));
  for (std::size_t i = 0; i < from.best.size(); ++i) {
    store_le(from.best[i].neuron, neurons.begin() + i * 4);
    store_le(from.best[i].score, scores.begin() + i * 4);
  }
  to.setComputeUs(from.compute_us);
}

EvalResult read(wire::EvalResult::Reader from) {
  EvalResult to;
  to.unit = UnitId{from.getUnit()};
  to.top_k = from.getTopK();
  to.compute_us = from.getComputeUs();
  if (to.top_k > kTopKMax) malformed("top_k", "{}, at most {}", to.top_k, kTopKMax);
  const auto neurons = read_values<std::uint32_t>("best.neurons", from.getNeurons());
  const auto scores = read_floats("best.scores", from.getScores());
  if (scores.size() != neurons.size()) {
    malformed("best.scores", "{} entries for {} neurons", scores.size(), neurons.size());
  }
  const bool is_whole = to.top_k == 0 ? neurons.empty() : neurons.size() % to.top_k == 0;
  if (!is_whole || neurons.size() > std::size_t{kBatchExamplesMax} * to.top_k) {
    malformed("best", "{} entries with {} an example", neurons.size(), to.top_k);
  }
  to.best.reserve(neurons.size());
  for (std::size_t i = 0; i < neurons.size(); ++i) {
    to.best.push_back({neurons[i], scores[i]});
    if (neurons[i] >= kLabelsMax) malformed("best.neurons", "entry {} is {}", i, neurons[i]);
    if (i % to.top_k != 0 && !is_before(to.best[i - 1], to.best[i])) {
      malformed("best", "entry {} is out of order", i);
    }
  }
  return to;
}

// Units of input shards that volunteers hold, their results, and the points these need.

namespace {

SharedBytes read_shared(capnp::Data::Reader data) {
  const ByteView bytes = view(data);
  return std::make_shared<const Bytes>(bytes.begin(), bytes.end());
}

InputStep read(wire::InputStep::Reader from, std::size_t leases) {
  InputStep to;
  to.kind = read_enum("steps.kind", from.getKind(), InputStep::Kind::kScore);
  to.index = from.getIndex();
  to.examples = from.getExamples();
  to.rate = from.getRate();
  if (to.examples == 0 || to.examples > kBatchExamplesMax) {
    malformed("steps.examples", "{}, must be 1 to {}", to.examples, kBatchExamplesMax);
  }
  // Written so that a NaN fails.
  if (!(to.rate >= 0.0F && to.rate <= kRateMax)) {
    malformed("steps.rate", "{} is not between 0 and {}", to.rate, kRateMax);
  }
  const std::size_t expected = to.kind == InputStep::Kind::kBackward ? leases : 0;
  const auto gradients = from.getGradients();
  if (gradients.size() != expected) {
    malformed("steps.gradients", "{} entries, expected {}", gradients.size(), expected);
  }
  for (const auto gradient : gradients) to.gradients.push_back(read_shared(gradient));
  return to;
}

std::vector<std::uint64_t> read_points(capnp::Data::Reader data) {
  auto points = read_values<std::uint64_t>("points", data);
  if (points.empty() || points.size() > kPointsPerRequestMax) {
    malformed("points", "{} entries, must be 1 to {}", points.size(), kPointsPerRequestMax);
  }
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (points[i] <= points[i - 1]) malformed("points", "entry {} is not above the last", i);
  }
  return points;
}

}  // namespace

void write(const InputUnit& from, wire::InputUnit::Builder to) {
  to.setUnit(raw(from.unit));
  write(from.leases, to.initLeases(length(from.leases.size())));
  auto steps = to.initSteps(length(from.steps.size()));
  for (std::size_t i = 0; i < from.steps.size(); ++i) {
    const InputStep& step = from.steps[i];
    auto out = steps[length(i)];
    out.setKind(static_cast<std::uint8_t>(step.kind));
    out.setIndex(step.index);
    out.setExamples(step.examples);
    out.setRate(step.rate);
    auto gradients = out.initGradients(length(step.gradients.size()));
    for (std::size_t j = 0; j < step.gradients.size(); ++j) {
      gradients.set(length(j), data_of(*step.gradients[j]));
    }
  }
}

InputUnit read(wire::InputUnit::Reader from) {
  InputUnit to;
  to.unit = UnitId{from.getUnit()};
  to.leases = read_leases(from.getLeases());
  const auto steps = from.getSteps();
  if (steps.size() == 0 || steps.size() > kStepsPerUnitMax) {
    malformed("steps", "{} entries, must be 1 to {}", steps.size(), kStepsPerUnitMax);
  }
  to.steps.reserve(steps.size());
  for (const auto step : steps) to.steps.push_back(read(step, to.leases.size()));
  return to;
}

void write(const InputResult& from, wire::InputResult::Builder to) {
  to.setUnit(raw(from.unit));
  auto activations = to.initActivations(length(from.activations.size()));
  for (std::size_t i = 0; i < from.activations.size(); ++i) {
    activations.set(length(i), data_of(from.activations[i]));
  }
  to.setComputeUs(from.compute_us);
}

InputResult read(wire::InputResult::Reader from) {
  InputResult to;
  to.unit = UnitId{from.getUnit()};
  const auto activations = from.getActivations();
  if (activations.size() > std::size_t{kStepsPerUnitMax} * kInputShardsMax) {
    malformed("activations", "{} entries", activations.size());
  }
  to.activations.reserve(activations.size());
  for (const auto part : activations) {
    const ByteView bytes = view(part);
    to.activations.emplace_back(bytes.begin(), bytes.end());
  }
  to.compute_us = from.getComputeUs();
  return to;
}

void write(const PointsRequest& from, wire::PointsRequest::Builder to) {
  to.setSet(static_cast<std::uint8_t>(from.set));
  to.setPoints(data_of(bytes_of(from.points)));
}

PointsRequest read(wire::PointsRequest::Reader from) {
  return {read_enum("set", from.getSet(), PointSet::kTestSet), read_points(from.getPoints())};
}

void write(const Points& from, wire::Points::Builder to) {
  to.setSet(static_cast<std::uint8_t>(from.set));
  to.setPoints(data_of(bytes_of(from.points)));
  to.setFeatures(data_of(pack_positives({from.offsets, from.features})));
  to.setValues(data_of(bytes_of(from.values)));
}

Points read(wire::Points::Reader from) {
  Points to;
  to.set = read_enum("set", from.getSet(), PointSet::kTestSet);
  to.points = read_points(from.getPoints());
  Positives features = unpack_positives("features", view(from.getFeatures()), kFeaturesMax);
  to.offsets = std::move(features.offsets);
  to.features = std::move(features.neurons);
  to.values = read_floats("values", from.getValues());
  if (to.offsets.size() != to.points.size() + 1) {
    malformed("features", "of {} points, expected {}", to.offsets.size() - 1, to.points.size());
  }
  if (to.values.size() != to.features.size()) {
    malformed("values", "{} entries for {} features", to.values.size(), to.features.size());
  }
  return to;
}

}  // namespace gleaner
