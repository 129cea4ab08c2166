#include "tools/dataset/dataset_synth_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/limits.hpp"

namespace gleaner {

namespace {

constexpr std::uint64_t kPrototypeFeatures = 16;
constexpr std::uint64_t kCompanions = 4;
constexpr std::uint32_t kLabelsPerPointMax = 1000;
// Means; a point has at most four times the first and one and a half times the second.
constexpr double kMeanLabelsMax = 250;
constexpr double kMeanFeaturesMax = 2500;

// Streams of the counter-based randomness, apart from one another.
enum Stream : std::uint64_t { kPoint = 0, kPrototype = 1, kCompanion = 2, kOrder = 3 };

bool draw_chance(Rng& rng, double probability) {
  return static_cast<double>(rng.next() >> 11) < probability * 9007199254740992.0;  // 2^53
}

}  // namespace

Result<void> validate(const SynthOptions& options) {
  const auto refuse = [](const char* flag, double value, const char* range) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--{} {} is out of range; give {}", flag, value, range)};
  };
  const Dimensions dimensions = options.dimensions;
  if (dimensions.features < 1 || dimensions.features > kFeaturesMax) {
    return refuse("features", dimensions.features, "1 to 1000000000");
  }
  if (dimensions.labels < 1 || dimensions.labels > kLabelsMax) {
    return refuse("labels", dimensions.labels, "1 to 100000000");
  }
  if (!(options.labels_per_point >= 1 && options.labels_per_point <= kMeanLabelsMax)) {
    return refuse("labels-per-point", options.labels_per_point, "1 to 250");
  }
  if (!(options.features_per_point >= 1 && options.features_per_point <= kMeanFeaturesMax)) {
    return refuse("features-per-point", options.features_per_point, "1 to 2500");
  }
  if (!(options.zipf >= 0 && options.zipf <= 3)) return refuse("zipf", options.zipf, "0 to 3");
  if (!(options.noise >= 0 && options.noise <= 1)) return refuse("noise", options.noise, "0 to 1");
  return {};
}

ZipfRanks::ZipfRanks(std::uint32_t count, double exponent) {
  std::uint64_t total = 0;
  std::uint64_t first = 0;
  while (first < count) {
    const std::uint64_t end =
        std::min<std::uint64_t>(count, first + std::max<std::uint64_t>(1, first / 12));
    const double middle = static_cast<double>(first + end + 1) / 2;
    const double weight = static_cast<double>(end - first) * std::pow(middle, -exponent);
    // Rounded to integers, so that a last bit of some library's pow() moves no draw.
    total += static_cast<std::uint64_t>(std::llround(weight * 4294967296.0)) + 1;
    firsts_.push_back(static_cast<std::uint32_t>(first));
    ends_.push_back(total);
    first = end;
  }
  firsts_.push_back(count);
}

std::uint32_t ZipfRanks::draw(Rng& rng) const {
  const std::uint64_t at = rng.next_below(ends_.back());
  const auto bin =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), at) - ends_.begin());
  const std::uint32_t width = firsts_[bin + 1] - firsts_[bin];
  if (width == 1) return firsts_[bin];
  return firsts_[bin] + static_cast<std::uint32_t>(rng.next_below(width));
}

SyntheticPoints::SyntheticPoints(const SynthOptions& options)
    : options_(options),
      label_ranks_(options.dimensions.labels, options.zipf),
      feature_ranks_(options.dimensions.features, 1),
      label_order_(options.dimensions.labels,
                   counter_random(options.seed, Purpose::kSynthetic, kOrder, 0)),
      feature_order_(options.dimensions.features,
                     counter_random(options.seed, Purpose::kSynthetic, kOrder, 1)) {}

// Geometric from 1 with the given mean, cut at `max`.
std::uint32_t SyntheticPoints::draw_count(Rng& rng, double mean, std::uint32_t max) const {
  std::uint32_t count = 1;
  while (count < max && draw_chance(rng, 1 - 1 / mean)) ++count;
  return count;
}

void SyntheticPoints::draw_labels(Rng& rng, std::vector<std::uint32_t>& ranks) const {
  const std::uint32_t wanted = std::min(
      draw_count(rng, options_.labels_per_point, kLabelsPerPointMax), options_.dimensions.labels);
  ranks.clear();
  ranks.push_back(label_ranks_.draw(rng));
  // One draw for each further label; a repeated label is not drawn again.
  for (std::uint32_t i = 1; i < wanted; ++i) {
    std::uint32_t rank = 0;
    if (rng.chance(1, 2)) {
      const std::uint64_t which = rng.next_below(kCompanions);
      Rng own(counter_random(options_.seed, Purpose::kSynthetic, kCompanion, ranks[0], which),
              Purpose::kSynthetic);
      rank = label_ranks_.draw(own);
    } else {
      rank = label_ranks_.draw(rng);
    }
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) ranks.push_back(rank);
  }
}

std::uint32_t SyntheticPoints::prototype_feature(std::uint32_t rank, std::uint64_t part) const {
  const std::uint64_t random =
      counter_random(options_.seed, Purpose::kSynthetic, kPrototype, rank, part);
  return static_cast<std::uint32_t>(below(random, options_.dimensions.features));
}

void SyntheticPoints::make(std::uint64_t index, Point& point) const {
  Rng rng(counter_random(options_.seed, Purpose::kSynthetic, kPoint, index), Purpose::kSynthetic);
  draw_labels(rng, point.labels);
  // Between half and one and a half times the mean.
  const auto mean = static_cast<std::uint64_t>(options_.features_per_point * 2);
  const std::uint64_t wanted =
      std::max<std::uint64_t>(1, (mean / 2 + rng.next_below(mean + 1)) / 2);
  std::vector<std::pair<std::uint32_t, float>> drawn;
  drawn.reserve(wanted);
  for (std::uint64_t i = 0; i < wanted; ++i) {
    const std::uint64_t random = rng.next();
    if (draw_chance(rng, options_.noise)) {
      const auto hundredths = static_cast<float>(10 + below(random, 50));
      const auto feature =
          static_cast<std::uint32_t>(feature_order_.forward(feature_ranks_.draw(rng)));
      drawn.emplace_back(feature, hundredths / 100);
    } else {
      const auto hundredths = static_cast<float>(50 + below(random, 100));
      const std::uint32_t rank = point.labels[i % point.labels.size()];
      drawn.emplace_back(prototype_feature(rank, rng.next_below(kPrototypeFeatures)),
                         hundredths / 100);
    }
  }
  // Where a feature is drawn twice, the smaller value stays; which one does not matter, only that
  // it is always the same.
  std::sort(drawn.begin(), drawn.end());
  point.features.clear();
  point.values.clear();
  for (const auto& [feature, value] : drawn) {
    if (!point.features.empty() && point.features.back() == feature) continue;
    point.features.push_back(feature);
    point.values.push_back(value);
  }
  for (std::uint32_t& label : point.labels) {
    label = static_cast<std::uint32_t>(label_order_.forward(label));
  }
  std::sort(point.labels.begin(), point.labels.end());
}

}  // namespace gleaner
