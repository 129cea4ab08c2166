// Counts over a data set, example by example, and warnings about them. No I/O.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/data/point_parser.hpp"

namespace gleaner {

// `part` as a fraction of `whole`; 0 of nothing.
double ratio(std::uint64_t part, std::uint64_t whole);

// Labels by frequency in training: the head is the fewest labels with half of all occurrences, the
// tail is the labels with the last tenth, and labels that never occur.
enum class FrequencyClass : std::uint8_t { kHead, kTorso, kTail };
inline constexpr std::size_t kFrequencyClasses = 3;

class FrequencyClasses {
 public:
  explicit FrequencyClasses(std::span<const std::uint32_t> label_counts);

  // A label that training does not know belongs to the tail.
  [[nodiscard]] FrequencyClass of(std::uint32_t label) const {
    return label < classes_.size() ? classes_[label] : FrequencyClass::kTail;
  }

  struct Extent {
    std::uint64_t labels = 0;
    std::uint32_t points_min = 0;  // training examples of a label
    std::uint32_t points_max = 0;
  };

  [[nodiscard]] const Extent& extent(std::size_t frequency_class) const {
    return extents_[frequency_class];
  }

 private:
  std::vector<FrequencyClass> classes_;
  std::array<Extent, kFrequencyClasses> extents_{};
};

// Numbers of values in the bins 0, 1, 2-3, 4-7, 8-15, ...
class PowerHistogram {
 public:
  struct Bin {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t count = 0;
  };

  void add(std::uint64_t value);
  // Up to the last bin that is not empty.
  [[nodiscard]] std::vector<Bin> bins() const;

 private:
  std::vector<std::uint64_t> counts_;
};

struct LabelCount {
  std::uint32_t label = 0;
  std::uint64_t points = 0;
};

class DatasetStatistics {
 public:
  void add(const Point& point);

  struct Summary {
    std::uint64_t points = 0;
    Dimensions dimensions;
    Dimensions seen;  // numbers of features and labels that occur
    std::uint64_t label_entries = 0;
    std::uint64_t feature_entries = 0;
    std::uint64_t points_without_labels = 0;
    std::uint64_t points_without_features = 0;
    float value_min = std::numeric_limits<float>::infinity();
    float value_max = -std::numeric_limits<float>::infinity();
    bool is_sorted_by_label = false;
    PowerHistogram labels_per_point;
    PowerHistogram features_per_point;
    PowerHistogram points_per_label;
    PowerHistogram points_per_feature;
    std::vector<LabelCount> frequent_labels;  // at most 10, the most frequent first
    std::vector<std::string> warnings;
  };

  // The number of examples with each label below `labels`, which covers all added labels.
  [[nodiscard]] std::vector<std::uint32_t> label_points(std::uint32_t labels) const {
    std::vector<std::uint32_t> points = label_points_;
    points.resize(labels);
    return points;
  }

  // `dimensions` must cover all added examples.
  [[nodiscard]] Summary summary(Dimensions dimensions, const Irregularities& irregularities) const;

 private:
  Summary gathered_;
  std::vector<std::uint32_t> label_points_;
  std::vector<std::uint32_t> feature_points_;
  std::uint32_t previous_label_ = 0;
  std::uint64_t label_steps_ = 0;       // consecutive examples that both have labels
  std::uint64_t label_steps_down_ = 0;  // steps to a smaller first label
  std::uint64_t label_steps_up_ = 0;
};

}  // namespace gleaner
