#include "volunteer/example_cache.hpp"

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
#include "tests/unit/volunteer/cache_files.hpp"

namespace gleaner::volunteer {

TEST_CASE("example cache: what was added is read bit for bit, from a file or memory", "[points]") {
  const TemporaryFolder folder;
  ExampleLists odd;
  for (const std::uint32_t bits : {0u, 0x80000000u, 1u, 0x7f800000u, 0xff800000u, 0x7fc00000u,
                                   0x7f800001u, 0xffffffffu, 0x3f800000u}) {
    odd.features.push_back(~bits);
    odd.values.push_back(std::bit_cast<float>(bits));
  }
  const std::string file = GENERATE("", "new/folder/a.points");
  ExampleCache cache(file.empty() ? file : folder.path() + "/" + file, kMuch);
  CHECK(cache.is_in_memory() == file.empty());
  CHECK_FALSE(cache.contains(5));
  REQUIRE(add(cache, 5, odd));
  REQUIRE(add(cache, kFarPoint, {}));
  REQUIRE(add(cache, 0, make_point(0, 200'000)));
  CHECK(is_read(cache, 5, odd));
  CHECK(is_read(cache, kFarPoint, {}));
  CHECK(is_read(cache, 0, make_point(0, 200'000)));
  CHECK_FALSE(is_read(cache, 6, {}));
  CHECK(cache.points() == 3);
  CHECK(cache.bytes() ==
        kHeaderBytes + record_bytes(odd.features.size()) + record_bytes(0) + record_bytes(200'000));
  CHECK_FALSE(cache.is_full());
}

TEST_CASE("example cache: labels come back with their point, and take four bytes each",
          "[points]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.points";
  const ExampleLists labelled{{7, 9}, {0.5F, 1.0F}, {3, 1'000'000}};
  const ExampleLists bare{{}, {}, {5}};
  {
    ExampleCache cache(path, kMuch);
    REQUIRE(add(cache, 1, labelled));
    REQUIRE(add(cache, 2, bare));
    CHECK(cache.bytes() == kHeaderBytes + record_bytes(2) + 8 + record_bytes(0) + 4);
  }
  ExampleCache cache(path, kMuch);
  CHECK(is_read(cache, 1, labelled));
  CHECK(is_read(cache, 2, bare));
}

TEST_CASE("example cache: points are read one behind the other, a missing one adds nothing",
          "[points]") {
  ExampleCache cache("", kMuch);
  REQUIRE(add(cache, 1, make_point(1, 2)));
  REQUIRE(add(cache, 2, make_point(2, 1)));
  ExampleLists batch;
  REQUIRE(cache.read(2, batch));
  REQUIRE_FALSE(cache.read(3, batch));
  REQUIRE(cache.read(1, batch));
  CHECK(is_same(batch, {{2000, 1000, 1001}, {2.0F, 1.0F, 1.125F}, {}}));
}

TEST_CASE("example cache: the file's bytes are those of the README", "[points]") {
  const Sample sample;
  CHECK(sample.bytes.substr(0, 12) == std::string("GLNPOINT\2\0\0\0", 12));
  const std::string name = fs::path(sample.path).filename().string();
  std::uint32_t of_name = 0;
  std::memcpy(&of_name, sample.bytes.data() + 12, sizeof of_name);
  CHECK(of_name == static_cast<std::uint32_t>(checksum(name.data(), name.size())));
  const std::string last = sample.bytes.substr(sample.ends[1]);
  CHECK(last.substr(0, 32) == std::string("\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0"
                                          "\xd0\7\0\0\xd1\7\0\0"
                                          "\0\0\0\x40\0\0\x08\x40",
                                          32));
  std::uint64_t sum = 0;
  std::memcpy(&sum, last.data() + 32, sizeof sum);
  CHECK(sum == checksum(last.data(), 32));
}

TEST_CASE("example cache: a file under another's name is not used", "[points]") {
  const Sample sample;
  const std::string other = sample.folder.path() + "/other.points";
  fs::copy_file(sample.path, other);
  CHECK(ExampleCache(sample.path, kMuch).points() == 3);
  CHECK(ExampleCache(other, kMuch).points() == 0);
}

TEST_CASE("example cache: another start finds every point and goes on", "[points]") {
  const Sample sample;
  // Larger than what is read in one piece, and with a piece's end inside a record.
  constexpr std::uint64_t kPoints = 3000;
  {
    ExampleCache cache(sample.path, kMuch);
    CHECK(cache.points() == 3);
    for (std::uint64_t i = 3; i < kPoints; ++i) REQUIRE(add(cache, i, make_point(i, 100)));
    REQUIRE(add(cache, kPoints, make_point(kPoints, 300'000)));
    REQUIRE(cache.bytes() == fs::file_size(sample.path));
  }
  ExampleCache cache(sample.path, kMuch);
  CHECK(cache.points() == kPoints + 1);
  CHECK(cache.bytes() == fs::file_size(sample.path));
  for (std::uint64_t i = 0; i < 3; ++i) REQUIRE(is_read(cache, i, sample.points[i]));
  for (std::uint64_t i = 3; i < kPoints; ++i) REQUIRE(is_read(cache, i, make_point(i, 100)));
  REQUIRE(is_read(cache, kPoints, make_point(kPoints, 300'000)));
}

TEST_CASE("example cache: a process killed at any byte loses the last record alone", "[points]") {
  const Sample sample;
  for (std::uint64_t length = 0; length <= sample.bytes.size(); ++length) {
    CAPTURE(length);
    write_file(sample.path, sample.bytes.substr(0, length));
    {
      ExampleCache cache(sample.path, kMuch);
      REQUIRE_FALSE(cache.is_in_memory());
      REQUIRE(cache.bytes() == fs::file_size(sample.path));
      for (std::size_t i = 0; i < sample.points.size(); ++i) {
        REQUIRE(is_read(cache, i, sample.points[i]) == (length >= sample.ends[i]));
        REQUIRE(add(cache, i, sample.points[i]));
      }
    }
    REQUIRE(read_file(sample.path) == sample.bytes);
  }
}

TEST_CASE("example cache: bytes that a lost write left as zeros are cut off", "[points]") {
  const Sample sample;
  write_file(sample.path, sample.bytes + std::string(5000, '\0'));
  const ExampleCache cache(sample.path, kMuch);
  CHECK(cache.points() == 3);
  CHECK(fs::file_size(sample.path) == sample.bytes.size());
}

TEST_CASE("example cache: a byte damaged under it is noticed, and the point can be added again",
          "[points]") {
  const Sample sample;
  const auto damaged = static_cast<char>(GENERATE(0x01, 0x80, 0xff));
  for (std::uint64_t offset = kHeaderBytes; offset < sample.bytes.size(); ++offset) {
    CAPTURE(offset);
    write_file(sample.path, sample.bytes);
    ExampleCache cache(sample.path, kMuch);
    put_byte(sample.path, offset, static_cast<char>(sample.bytes[offset] ^ damaged));
    std::uint64_t begin = kHeaderBytes;
    for (std::size_t i = 0; i < sample.points.size(); ++i) {
      const bool is_hit = offset >= begin && offset < sample.ends[i];
      REQUIRE(is_read(cache, i, sample.points[i]) == !is_hit);
      begin = sample.ends[i];
    }
    for (std::size_t i = 0; i < sample.points.size(); ++i) {
      REQUIRE(add(cache, i, sample.points[i]));
      REQUIRE(is_read(cache, i, sample.points[i]));
    }
  }
}

TEST_CASE("example cache: a byte damaged between two starts is noticed", "[points]") {
  const Sample sample;
  const auto damaged = static_cast<char>(GENERATE(0x01, 0x80, 0xff));
  for (std::uint64_t offset = 0; offset < sample.bytes.size(); ++offset) {
    CAPTURE(offset);
    write_file(sample.path, sample.bytes);
    put_byte(sample.path, offset, static_cast<char>(sample.bytes[offset] ^ damaged));
    {
      ExampleCache cache(sample.path, kMuch);
      // A damaged header loses the file, anything else its own point. After a damaged count the
      // rest may be found again, by chance.
      const bool is_lost = offset < kHeaderBytes;
      bool may_be_lost = false;
      std::uint64_t begin = kHeaderBytes;
      for (std::size_t i = 0; i < sample.points.size(); ++i) {
        const bool is_hit = offset >= begin && offset < sample.ends[i];
        const bool was_read = is_read(cache, i, sample.points[i]);
        if (is_lost || is_hit) REQUIRE_FALSE(was_read);
        if (!is_lost && !is_hit && !may_be_lost) REQUIRE(was_read);
        may_be_lost |= is_hit && offset >= begin + 8 && offset < begin + 16;
        REQUIRE(add(cache, i, sample.points[i]));
        begin = sample.ends[i];
      }
      REQUIRE(cache.bytes() == fs::file_size(sample.path));
    }
    ExampleCache cache(sample.path, kMuch);
    REQUIRE(cache.points() == 3);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(is_read(cache, i, sample.points[i]));
  }
}

TEST_CASE("example cache: neither file nor memory grows beyond the bound", "[points]") {
  const TemporaryFolder folder;
  const std::string file = GENERATE("", "a.points");
  const std::string path = file.empty() ? file : folder.path() + "/" + file;
  const std::uint64_t spare = GENERATE(as<std::uint64_t>(), 0, 1, 23);
  const std::uint64_t bound = kHeaderBytes + 2 * record_bytes(4) + record_bytes(0) + spare;
  ExampleCache cache(path, bound);
  REQUIRE(add(cache, 0, make_point(0, 4)));
  REQUIRE_FALSE(add(cache, 1, make_point(1, 11)));
  CHECK(cache.is_full());
  REQUIRE(add(cache, 2, make_point(2, 4)));
  REQUIRE_FALSE(add(cache, 3, make_point(3, 4)));
  REQUIRE(add(cache, 4, {}));
  REQUIRE_FALSE(add(cache, 5, {}));
  CHECK(add(cache, 0, make_point(0, 4)));
  CHECK(cache.bytes() == bound - spare);
  CHECK(is_read(cache, 0, make_point(0, 4)));
  CHECK_FALSE(is_read(cache, 1, {}));
  if (!path.empty()) CHECK(fs::file_size(path) == bound - spare);
}

TEST_CASE("example cache: without room for anything, nothing is kept and no file made",
          "[points]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.points";
  ExampleCache cache(path, GENERATE(as<std::uint64_t>(), 0, 15));
  CHECK_FALSE(add(cache, 0, {}));
  CHECK_FALSE(is_read(cache, 0, {}));
  CHECK(cache.is_full());
  CHECK(cache.bytes() == 0);
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("example cache: a file above a bound made smaller is cut to it", "[points]") {
  const Sample sample;
  ExampleCache cache(sample.path, sample.ends[2] - 1);
  CHECK(cache.points() == 2);
  CHECK(is_read(cache, 0, sample.points[0]));
  CHECK(fs::file_size(sample.path) == sample.ends[1]);
}

TEST_CASE("example cache: lists that do not fit each other or any frame are refused", "[points]") {
  ExampleCache cache("", kMuch);
  const std::vector<std::uint32_t> features(kFrameBytesMax / 8 + 1);
  const std::vector<float> values(features.size());
  CHECK_FALSE(cache.add(0, features, {}, {}));
  CHECK_FALSE(cache.add(0, features, values, {}));
  CHECK_FALSE(cache.is_full());
  CHECK(cache.points() == 0);
}

TEST_CASE("example cache: a full disk takes no half record and is not asked again", "[points]") {
  const Sample sample;
  const std::uint64_t room = GENERATE(as<std::uint64_t>(), 0, 1, 39);
  {
    ExampleCache cache(sample.path, kMuch);
    {
      const FullDisk full(sample.bytes.size() + room);
      REQUIRE_FALSE(add(cache, 3, make_point(3, 2)));
    }
    CHECK(cache.is_full());
    CHECK_FALSE(add(cache, 4, {}));
    CHECK(cache.points() == 3);
    CHECK(is_read(cache, 2, sample.points[2]));
  }
  CHECK(read_file(sample.path) == sample.bytes);
  ExampleCache cache(sample.path, kMuch);
  CHECK(add(cache, 3, make_point(3, 2)));
}

TEST_CASE("example cache: a limit on the size of files is a bound", "[points]") {
  const Sample sample;
  const FullDisk limit(sample.bytes.size() + record_bytes(2));
  ExampleCache cache(sample.path, kMuch);
  CHECK(add(cache, 3, make_point(3, 2)));
  CHECK_FALSE(add(cache, 4, {}));
}

TEST_CASE("example cache: a file of something else or of another version is replaced", "[points]") {
  const Sample sample;
  std::string other_version = sample.bytes;
  other_version[8] = 1;
  const std::string bytes =
      GENERATE_REF(std::string(), std::string("short"), std::string(1000, 'x'), other_version);
  write_file(sample.path, bytes);
  {
    ExampleCache cache(sample.path, kMuch);
    CHECK_FALSE(cache.is_in_memory());
    CHECK(cache.points() == 0);
    for (std::size_t i = 0; i < 3; ++i) REQUIRE(add(cache, i, sample.points[i]));
  }
  CHECK(read_file(sample.path) == sample.bytes);
}

TEST_CASE("example cache: a second user of the file works in memory", "[points]") {
  const Sample sample;
  auto first = std::make_unique<ExampleCache>(sample.path, kMuch);
  ExampleCache second(sample.path, kMuch);
  CHECK(second.is_in_memory());
  CHECK(second.points() == 0);
  REQUIRE(add(second, 7, make_point(7, 3)));
  CHECK(is_read(second, 7, make_point(7, 3)));
  CHECK(is_read(*first, 0, sample.points[0]));
  CHECK(read_file(sample.path) == sample.bytes);
  first.reset();
  CHECK_FALSE(ExampleCache(sample.path, kMuch).is_in_memory());
}

TEST_CASE("example cache: where no file can be, points are kept in memory", "[points]") {
  const TemporaryFolder folder;
  write_file(folder.path() + "/file", "not a folder");
  fs::create_directory(folder.path() + "/folder.points");
  ExampleCache cache(folder.path() + GENERATE("/file/a.points", "/folder.points"), kMuch);
  CHECK(cache.is_in_memory());
  REQUIRE(add(cache, 1, make_point(1, 2)));
  CHECK(is_read(cache, 1, make_point(1, 2)));
}

TEST_CASE("example cache: a file cut short or deleted under it does no harm", "[points]") {
  const Sample sample;
  ExampleCache cache(sample.path, kMuch);
  fs::resize_file(sample.path, sample.ends[2] - 1);
  CHECK_FALSE(is_read(cache, 2, {}));
  CHECK(add(cache, 2, sample.points[2]));
  fs::remove(sample.path);
  CHECK(add(cache, 3, make_point(3, 2)));
  for (std::size_t i = 0; i < 3; ++i) CHECK(is_read(cache, i, sample.points[i]));
}

TEST_CASE("example cache: caches of earlier runs go, oldest first, until the folder's bound holds",
          "[points]") {
  const Sample sample;
  const std::uint64_t bytes = sample.bytes.size();
  const auto other = [&](const char* name) { return sample.folder.path() + "/" + name; };
  const auto now = fs::last_write_time(sample.path);
  int age = 9;
  for (const char* name : {"not-a-cache.points", "a-cache.other", "in-use.points", "old.points",
                           "older.points", "new.points"}) {
    if (name == std::string("not-a-cache.points")) {
      write_file(other(name), std::string(bytes, 'x'));
    } else {
      // A cache knows the name that it was made under.
      ExampleCache cache(other(name), kMuch);
      for (std::size_t i = 0; i < 3; ++i) REQUIRE(add(cache, i, sample.points[i]));
    }
    fs::last_write_time(other(name), now - std::chrono::hours(age--));
  }
  fs::last_write_time(other("older.points"), now - std::chrono::hours(20));
  fs::last_write_time(sample.path, now - std::chrono::hours(50));
  const ExampleCache in_use(other("in-use.points"), kMuch);
  fs::last_write_time(other("in-use.points"), now - std::chrono::hours(40));

  const auto left = [&] {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(sample.folder.path())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  };
  using Names = std::vector<std::string>;
  // Five other files count, also the file that is no cache: a file that may not go takes room all
  // the same.
  ExampleCache::make_room(sample.path, 1000, 1000 + 5 * bytes);
  CHECK(left().size() == 7);
  ExampleCache::make_room(sample.path, 1000, 1000 + 5 * bytes - 1);
  CHECK(left() == Names{"a-cache.other", "a.points", "in-use.points", "new.points",
                        "not-a-cache.points", "old.points"});
  ExampleCache::make_room(sample.path, 1000, 1000 + 3 * bytes);
  CHECK(left() ==
        Names{"a-cache.other", "a.points", "in-use.points", "new.points", "not-a-cache.points"});
  ExampleCache::make_room(sample.path, std::numeric_limits<std::uint64_t>::max(), 0);
  CHECK(left() == Names{"a-cache.other", "a.points", "in-use.points", "not-a-cache.points"});
  ExampleCache::make_room(sample.folder.path() + "/none/a.points", 0, 0);
}

TEST_CASE("example cache: opening a file makes it the one that goes last", "[points]") {
  const Sample sample;
  write_file(sample.folder.path() + "/b.points", sample.bytes);
  const auto long_ago = fs::last_write_time(sample.path) - std::chrono::hours(9);
  fs::last_write_time(sample.path, long_ago);
  CHECK(ExampleCache(sample.path, kMuch).points() == 3);
  CHECK(fs::last_write_time(sample.path) > long_ago + std::chrono::hours(8));
}

}  // namespace gleaner::volunteer
