// Points, files of points, and a disk that is full.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>

#include "common/data/packed_format.hpp"
#include "common/limits.hpp"
#include "tests/unit/storage/temporary_folder.hpp"
#include "volunteer/example_cache.hpp"

namespace gleaner::volunteer {

namespace fs = std::filesystem;
using gleaner::test::TemporaryFolder;

inline constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kHeaderBytes = 16;
inline constexpr std::uint64_t kFarPoint = 0xfedcba9876543210;

inline constexpr std::uint64_t record_bytes(std::uint64_t count) {
  return 24 + 8 * count;
}

// `count` features that tell one point from another.
inline ExampleLists make_point(std::uint64_t point, std::uint32_t count) {
  ExampleLists made;
  for (std::uint32_t i = 0; i < count; ++i) {
    made.features.push_back(static_cast<std::uint32_t>(point) * 1000 + i);
    made.values.push_back(static_cast<float>(point) + static_cast<float>(i) / 8);
  }
  return made;
}

inline bool add(ExampleCache& cache, std::uint64_t point, const ExampleLists& lists) {
  return cache.add(point, lists.features, lists.values, lists.labels);
}

inline bool is_same(const ExampleLists& a, const ExampleLists& b) {
  const auto same_bits = [](float x, float y) {
    return std::bit_cast<std::uint32_t>(x) == std::bit_cast<std::uint32_t>(y);
  };
  return a.features == b.features && a.labels == b.labels &&
         std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(), same_bits);
}

// Checks that what is read is right, or that nothing is read and the point is forgotten. Returns
// whether it was read.
inline bool is_read(ExampleCache& cache, std::uint64_t point, const ExampleLists& expected) {
  ExampleLists out;
  const bool was_read = cache.read(point, out);
  REQUIRE(is_same(out, was_read ? expected : ExampleLists()));
  REQUIRE(cache.contains(point) == was_read);
  return was_read;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// In the file as it is, also while a cache has it open.
inline void put_byte(const std::string& path, std::uint64_t offset, char byte) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

// Three points of 3, 0 and 2 features.
struct Sample {
  Sample() {
    ExampleCache cache(path, kMuch);
    for (std::size_t i = 0; i < points.size(); ++i) REQUIRE(add(cache, i, points[i]));
    bytes = read_file(path);
    REQUIRE(bytes.size() == ends.back());
    REQUIRE(cache.bytes() == bytes.size());
  }

  TemporaryFolder folder;
  std::string path = folder.path() + "/a.points";
  std::vector<ExampleLists> points{make_point(0, 3), make_point(1, 0), make_point(2, 2)};
  std::vector<std::uint64_t> ends{kHeaderBytes + 48, kHeaderBytes + 72, kHeaderBytes + 112};
  std::string bytes;
};

// While it lives, files of this process grow to `bytes` and no further, as on a disk that is full.
class FullDisk {
 public:
  explicit FullDisk(std::uint64_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit now = before_;
    now.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &now) == 0);
  }

  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace gleaner::volunteer
