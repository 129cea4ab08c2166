// Labels by how frequent they are in training.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gleaner {

// Labels by how often training points bear them: the head are the fewest labels that hold half of
// all occurrences, the tail those that hold the last tenth and those never seen.
enum class FrequencyClass : std::uint8_t { kHead, kTorso, kTail };
inline constexpr std::size_t kFrequencyClasses = 3;

class FrequencyClasses {
 public:
  explicit FrequencyClasses(std::span<const std::uint32_t> label_counts);

  // Labels that training does not know are of the tail.
  [[nodiscard]] FrequencyClass of(std::uint32_t label) const {
    return label < classes_.size() ? classes_[label] : FrequencyClass::kTail;
  }

  struct Extent {
    std::uint64_t labels = 0;
    std::uint32_t points_min = 0;  // training points of a label
    std::uint32_t points_max = 0;
  };

  [[nodiscard]] const Extent& extent(std::size_t frequency_class) const {
    return extents_[frequency_class];
  }

 private:
  std::vector<FrequencyClass> classes_;
  std::array<Extent, kFrequencyClasses> extents_{};
};

}  // namespace gleaner
