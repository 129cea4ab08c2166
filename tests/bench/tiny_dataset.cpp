#include "tests/bench/tiny_dataset.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "common/counter_random.hpp"
#include "common/data/open_or_pack.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kFeatures = 400;
constexpr std::uint32_t kLabels = 200;
constexpr std::uint64_t kFeaturesOfLabel = 6;

}  // namespace

Result<std::unique_ptr<TinyDataset>> TinyDataset::make() {
  std::unique_ptr<TinyDataset> tiny(new TinyDataset);
  std::string folder = std::filesystem::temp_directory_path() / "gleaner-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return Error{ErrorCode::kIo, fmt::format("{}: cannot be created", folder)};
  }
  tiny->folder_ = folder;
  auto train = tiny->write("train.txt", 1500, 1);
  if (!train) return train.error();
  auto test = tiny->write("test.txt", 300, 2);
  if (!test) return test.error();
  tiny->train_ = std::move(*train);
  tiny->test_ = std::move(*test);
  return tiny;
}

TinyDataset::~TinyDataset() {
  train_.reset();
  test_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

// Two labels a point, each with half of its features present, and one feature that means nothing.
Result<std::unique_ptr<PackedDataset>> TinyDataset::write(const std::string& name,
                                                          std::uint64_t points,
                                                          std::uint64_t stream) const {
  const std::string path = folder_ + "/" + name;
  {
    std::ofstream file(path);
    file << points << ' ' << kFeatures << ' ' << kLabels << '\n';
    Rng rng(1, Purpose::kTest, stream);
    for (std::uint64_t p = 0; p < points; ++p) {
      std::set<std::uint64_t> labels;
      while (labels.size() < 2) labels.insert(rng.next_below(kLabels));
      std::set<std::uint64_t> features = {rng.next_below(kFeatures)};
      for (const std::uint64_t label : labels) {
        for (std::uint64_t f = 0; f < kFeaturesOfLabel; ++f) {
          if (rng.chance(1, 2)) features.insert(mix64(label * kFeaturesOfLabel + f) % kFeatures);
        }
      }
      file << *labels.begin() << ',' << *labels.rbegin();
      for (const std::uint64_t feature : features) file << ' ' << feature << ":1";
      file << '\n';
    }
  }
  return open_or_pack(path);
}

}  // namespace gleaner
