// Units of input shards that volunteers hold, their results, and the points these need.
#include <utility>

#include "schema/compact_lists.hpp"
#include "schema/wire/wire.hpp"

namespace gleaner {
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
  return {read_enum("set", from.getSet(), PointSet::kHeldOut), read_points(from.getPoints())};
}

void write(const Points& from, wire::Points::Builder to) {
  to.setSet(static_cast<std::uint8_t>(from.set));
  to.setPoints(data_of(bytes_of(from.points)));
  to.setFeatures(data_of(pack_positives({from.offsets, from.features})));
  to.setValues(data_of(bytes_of(from.values)));
}

Points read(wire::Points::Reader from) {
  Points to;
  to.set = read_enum("set", from.getSet(), PointSet::kHeldOut);
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
