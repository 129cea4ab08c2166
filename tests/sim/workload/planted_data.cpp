#include "tests/sim/workload/planted_data.hpp"

#include <unistd.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "common/counter_random.hpp"
#include "common/data/packed_writer.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

Point planted_point(const PlantedShape& shape, std::uint64_t seed, Rng& random) {
  std::set<std::uint32_t> labels;
  const std::uint64_t label_count = 1 + random.next_below(3);
  while (labels.size() < label_count) {
    // The product of two uniforms favours small numbers, as real label frequencies do.
    const std::uint64_t high = 1 + random.next_below(shape.labels);
    labels.insert(static_cast<std::uint32_t>(random.next_below(high)));
  }
  std::map<std::uint32_t, float> features;
  for (const std::uint32_t label : labels) {
    for (std::uint64_t k = 0; k < 4; ++k) {
      const std::uint64_t own = counter_random(seed, Purpose::kTest, label, k);
      features[static_cast<std::uint32_t>(below(own, shape.features))] += 1.0F;
    }
  }
  features[static_cast<std::uint32_t>(random.next_below(shape.features))] += 0.5F;
  Point point;
  point.labels.assign(labels.begin(), labels.end());
  for (const auto& [feature, value] : features) {
    point.features.push_back(feature);
    point.values.push_back(value);
  }
  return point;
}

}  // namespace

std::unique_ptr<PackedDataset> planted_data(const PlantedShape& shape, std::uint64_t seed,
                                            std::uint64_t part) {
  static int made = 0;
  const std::string path =
      (std::filesystem::temp_directory_path() /
       ("gleaner-planted-" + std::to_string(getpid()) + "-" + std::to_string(++made)))
          .string();
  auto writer = PackedWriter::create(path, true);
  GLEANER_CHECK(writer.ok());
  Rng random(seed, Purpose::kTest, part + 1);
  for (std::uint64_t i = 0; i < shape.points; ++i) {
    GLEANER_CHECK((*writer)->add(planted_point(shape, seed, random)).ok());
  }
  GLEANER_CHECK((*writer)
                    ->finish({shape.features, shape.labels}, {}, "", AtomicFile::Existing::kReplace)
                    .ok());
  auto data = PackedDataset::open(path);
  GLEANER_CHECK(data.ok());
  std::filesystem::remove(path);
  return std::move(data).value();
}

}  // namespace gleaner
