#include "master/recipe/trial_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "common/counter_random.hpp"
#include "common/data/packed_writer.hpp"

namespace gleaner {
namespace {

// Below this number of labels an example, labels are drawn instead of examples.
constexpr std::uint64_t kLabelsSeveral = 2;
constexpr std::uint64_t kHeldOutFraction = 10;  // one in ten,
constexpr std::uint64_t kHeldOutWanted = 500;   // at least as many,
constexpr std::uint64_t kHeldOutMost = 5;       // and at most one in five
constexpr std::uint32_t kNoLabel = ~0U;

// The examples of a sample, ascending, and the new numbers of its labels.
struct Sample {
  std::vector<std::uint64_t> points;
  std::vector<std::uint32_t> numbers;  // by label; kNoLabel for others
  std::uint32_t labels = 0;
};

std::vector<std::uint64_t> drawn_points(std::uint64_t points, std::uint64_t sample,
                                        std::uint64_t key) {
  std::vector<std::uint64_t> drawn(std::min(points, sample));
  std::iota(drawn.begin(), drawn.end(), 0);
  if (sample < points) {
    const Permutation order(points, key);
    for (std::uint64_t& point : drawn) point = order.forward(point);
    std::ranges::sort(drawn);
  }
  return drawn;
}

// Marks labels that have about `sample` examples together.
std::vector<std::uint8_t> drawn_labels(const PackedDataset& data, std::uint64_t sample,
                                       std::uint64_t key) {
  const std::vector<std::uint32_t> counts = count_labels(data);
  std::vector<std::uint8_t> is_drawn(counts.size());
  const Permutation order(counts.size(), key);
  std::uint64_t examples = 0;
  for (std::uint64_t i = 0; i < counts.size() && examples < sample; ++i) {
    is_drawn[order.forward(i)] = 1;
    examples += counts[order.forward(i)];
  }
  return is_drawn;
}

// With `is_drawn` empty, all labels of the points.
void number_labels(const PackedDataset& data, const std::vector<std::uint8_t>& is_drawn,
                   Sample& sample) {
  sample.numbers.assign(data.labels(), kNoLabel);
  for (const std::uint64_t point : sample.points) {
    for (const std::uint32_t label : data.example(point).labels) {
      if (is_drawn.empty() || is_drawn[label] != 0) sample.numbers[label] = 0;
    }
  }
  for (std::uint32_t& number : sample.numbers) {
    if (number != kNoLabel) number = sample.labels++;
  }
}

Sample draw(const PackedDataset& data, std::uint64_t size, std::uint64_t seed) {
  Sample sample;
  std::vector<std::uint8_t> is_drawn;
  const std::uint64_t key = counter_random(seed, Purpose::kSplit);
  if (size < data.points() && data.summary().label_entries < kLabelsSeveral * data.points()) {
    is_drawn = drawn_labels(data, size, key);
    for (std::uint64_t point = 0; point < data.points(); ++point) {
      const auto labels = data.example(point).labels;
      if (std::ranges::any_of(labels, [&](auto label) { return is_drawn[label] != 0; })) {
        sample.points.push_back(point);
      }
    }
  } else {
    sample.points = drawn_points(data.points(), size, key);
  }
  number_labels(data, is_drawn, sample);
  return sample;
}

Point point_of(const ExampleView& example, const Sample& sample) {
  Point point;
  for (const std::uint32_t label : example.labels) {
    if (sample.numbers[label] != kNoLabel) point.labels.push_back(sample.numbers[label]);
  }
  point.features.assign(example.features.begin(), example.features.end());
  point.values.assign(example.values.begin(), example.values.end());
  return point;
}

}  // namespace

Result<std::vector<TrialData>> trial_data(const PackedDataset& data, std::uint64_t size,
                                          std::uint64_t seed, const std::string& scratch) {
  const Sample sample = draw(data, size, seed);
  const std::uint64_t points = sample.points.size();
  const std::uint64_t held =
      std::min(std::max(points / kHeldOutFraction, kHeldOutWanted), points / kHeldOutMost);
  std::vector<TrialData> parts;
  if (held < kTrialExamplesMin) return parts;
  const Permutation order(points, counter_random(seed, Purpose::kSplit, 1));
  const std::uint64_t count = std::clamp<std::uint64_t>(size / points, 1, kTrialParts);
  for (std::uint64_t part = 0; part < count; ++part) {
    const std::string path = fmt::format("{}.{}", scratch, part);
    TrialData made;
    auto writer = PackedWriter::create(path, false);
    if (!writer) return writer.error();
    for (std::uint64_t i = 0; i < points; ++i) {
      Point point = point_of(data.example(sample.points[i]), sample);
      if (order.inverse(i) / held == part) {
        made.held_out.push_back(std::move(point));
      } else if (auto added = (*writer)->add(point); !added) {
        return added.error();
      }
    }
    auto finished =
        (*writer)->finish({data.features(), sample.labels}, {}, "", AtomicFile::Existing::kReplace);
    if (!finished) return finished.error();
    auto opened = PackedDataset::open(path);
    std::remove(path.c_str());
    if (!opened) return opened.error();
    made.train = std::move(*opened);
    parts.push_back(std::move(made));
  }
  return parts;
}

}  // namespace gleaner
