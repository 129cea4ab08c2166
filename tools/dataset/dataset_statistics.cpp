#include "tools/dataset/dataset_statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/console/terminal.hpp"
#include "common/data/packed_format.hpp"
#include "common/result.hpp"
#include "tools/dataset/dataset_stream.hpp"

namespace gleaner {
namespace {

constexpr double kHeadShare = 0.5;
constexpr double kTailShare = 0.1;

constexpr std::size_t kFrequentLabels = 10;

void count(std::vector<std::uint32_t>& counts, std::uint32_t id) {
  if (id >= counts.size()) counts.resize(std::size_t{id} + 1 + counts.size() / 2, 0);
  ++counts[id];
}

std::vector<std::string> warnings_for(const DatasetStatistics::Summary& summary,
                                      const Irregularities& irregularities) {
  std::vector<std::string> warnings;
  const auto warn = [&](std::uint64_t number, std::uint64_t whole, const char* sentence) {
    if (number == 0) return;
    warnings.push_back(
        fmt::format("{} {} ({:.1f} %)", grouped(number), sentence, 100 * ratio(number, whole)));
  };
  warn(summary.points_without_labels, summary.points,
       "examples have no labels; they teach only what not to expect");
  warn(summary.points_without_features, summary.points,
       "examples have no features; nothing can be learned from them");
  warn(summary.dimensions.labels - summary.seen.labels, summary.dimensions.labels,
       "labels never occur; they cannot be learned here");
  warn(summary.dimensions.features - summary.seen.features, summary.dimensions.features,
       "features never occur");
  warn(irregularities.unsorted_points, summary.points,
       "examples had their features out of order; sorted when read");
  warn(irregularities.repeated_labels, summary.label_entries,
       "labels stood twice in an example; kept once");
  warn(irregularities.zero_values, summary.feature_entries,
       "features had the value zero; dropped when read");
  if (summary.is_sorted_by_label) {
    warnings.emplace_back(
        "The examples are sorted by label. Training shuffles them, but the head of the file is no "
        "sample of it; cut parts off with 'gleaner dataset split'.");
  }
  if (!summary.frequent_labels.empty()) {
    const LabelCount top = summary.frequent_labels[0];
    const double percent = 100 * ratio(top.points, summary.points);
    if (percent > 50) {
      warnings.push_back(
          fmt::format("Label {} is on {:.0f} % of the examples: naming it always "
                      "gives that precision at 1",
                      top.label, percent));
    }
  }
  return warnings;
}

}  // namespace

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

FrequencyClasses::FrequencyClasses(std::span<const std::uint32_t> label_counts)
    : classes_(label_counts.size()) {
  std::vector<std::uint32_t> order(label_counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](auto a, auto b) { return label_counts[a] > label_counts[b]; });
  double total = 0;
  for (const std::uint32_t count : label_counts) total += count;
  double before = 0;  // occurrences of labels that are more frequent
  for (const std::uint32_t label : order) {
    const std::uint32_t count = label_counts[label];
    auto own = FrequencyClass::kTorso;
    if (before >= (1 - kTailShare) * total) own = FrequencyClass::kTail;
    if (before < kHeadShare * total) own = FrequencyClass::kHead;
    before += count;
    classes_[label] = own;
    Extent& extent = extents_[static_cast<std::size_t>(own)];
    if (extent.labels++ == 0) extent.points_max = count;
    extent.points_min = count;
  }
}

void PowerHistogram::add(std::uint64_t value) {
  const auto bin = static_cast<std::size_t>(std::bit_width(value));
  if (bin >= counts_.size()) counts_.resize(bin + 1, 0);
  ++counts_[bin];
}

std::vector<PowerHistogram::Bin> PowerHistogram::bins() const {
  std::vector<Bin> bins;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const std::uint64_t first = i == 0 ? 0 : std::uint64_t{1} << (i - 1);
    bins.push_back({first, i == 0 ? 0 : 2 * first - 1, counts_[i]});
  }
  return bins;
}

void DatasetStatistics::add(const Point& point) {
  Summary& s = gathered_;
  if (!point.labels.empty()) {
    const bool has_previous = s.points > s.points_without_labels;
    label_steps_ += has_previous;
    label_steps_down_ += has_previous && point.labels[0] < previous_label_;
    label_steps_up_ += has_previous && point.labels[0] > previous_label_;
    previous_label_ = point.labels[0];
  }
  ++s.points;
  s.points_without_labels += point.labels.empty();
  s.points_without_features += point.features.empty();
  s.labels_per_point.add(point.labels.size());
  s.features_per_point.add(point.features.size());
  for (const std::uint32_t label : point.labels) count(label_points_, label);
  for (const std::uint32_t feature : point.features) count(feature_points_, feature);
  for (const float value : point.values) {
    s.value_min = std::min(s.value_min, value);
    s.value_max = std::max(s.value_max, value);
  }
  s.label_entries += point.labels.size();
  s.feature_entries += point.features.size();
}

DatasetStatistics::Summary DatasetStatistics::summary(Dimensions dimensions,
                                                      const Irregularities& irregularities) const {
  Summary result = gathered_;
  result.dimensions = dimensions;
  if (result.feature_entries == 0) result.value_min = result.value_max = 0;
  std::vector<LabelCount>& top = result.frequent_labels;
  for (std::uint32_t label = 0; label < dimensions.labels; ++label) {
    const std::uint32_t points = label < label_points_.size() ? label_points_[label] : 0;
    result.points_per_label.add(points);
    if (points == 0) continue;
    ++result.seen.labels;
    const auto place = std::find_if(top.begin(), top.end(),
                                    [&](const LabelCount& other) { return other.points < points; });
    if (place == top.end() && top.size() == kFrequentLabels) continue;
    top.insert(place, {label, points});
    if (top.size() > kFrequentLabels) top.pop_back();
  }
  for (std::uint32_t feature = 0; feature < dimensions.features; ++feature) {
    const std::uint32_t points = feature < feature_points_.size() ? feature_points_[feature] : 0;
    result.points_per_feature.add(points);
    result.seen.features += points > 0;
  }
  // A handful of points may be in order by chance.
  result.is_sorted_by_label =
      label_steps_ >= 20 && label_steps_up_ > 0 && label_steps_down_ * 50 < label_steps_;
  result.warnings = warnings_for(result, irregularities);
  return result;
}

}  // namespace gleaner
