#include "common/data/packed_dataset.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstring>

#include "common/counter_random.hpp"
#include "common/data/packed_format.hpp"
#include "common/data/packed_writer.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

constexpr Dimensions kDimensions{50, 20};

std::vector<Point> random_points(std::uint64_t count, std::uint64_t seed) {
  Rng rng(seed, Purpose::kTest);
  std::vector<Point> points(count);
  for (Point& point : points) {
    for (std::uint32_t id = 0; id < kDimensions.labels; ++id) {
      if (rng.chance(1, 8)) point.labels.push_back(id);
    }
    for (std::uint32_t id = 0; id < kDimensions.features; ++id) {
      if (!rng.chance(1, 6)) continue;
      point.features.push_back(id);
      point.values.push_back(signed_unit(rng.next()) + 1.5F);
    }
  }
  return points;
}

void write_packed(const std::string& path, const std::vector<Point>& points, bool normalize,
                  const std::string& key = "") {
  auto writer = std::move(PackedWriter::create(path, normalize)).value();
  for (const Point& point : points) REQUIRE(writer->add(point).ok());
  REQUIRE(writer->finish(kDimensions, {1, 2, 3}, key, AtomicFile::Existing::kReplace).ok());
}

void require_equal(const PackedDataset& dataset, const std::vector<Point>& points) {
  REQUIRE(dataset.points() == points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ExampleView view = dataset.example(i);
    REQUIRE(std::vector(view.labels.begin(), view.labels.end()) == points[i].labels);
    REQUIRE(std::vector(view.features.begin(), view.features.end()) == points[i].features);
    REQUIRE(std::vector(view.values.begin(), view.values.end()) == points[i].values);
  }
}

// Writes the header's checksum again after `change`, as a sound writer of unsound files would.
template <typename Change>
void patch_header(const std::string& path, Change change) {
  std::string bytes = read_file(path);
  packed::Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  change(header, bytes);
  header.header_checksum = packed::checksum_of(header);
  std::memcpy(bytes.data(), &header, sizeof header);
  write_file(path, bytes);
}

}  // namespace

TEST_CASE("packed: points are read back as written, at every size around a block", "[packed]") {
  const TempFolder folder;
  for (const std::uint64_t count : {1u, 2u, 1023u, 1024u, 1025u, 2048u, 3000u}) {
    const std::vector<Point> points = random_points(count, count);
    write_packed(folder.file("a"), points, false, "some key\n");
    for (const std::uint64_t check_bytes_max : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      const auto dataset =
          std::move(PackedDataset::open(folder.file("a"), {check_bytes_max})).value();
      require_equal(*dataset, points);
      CHECK(dataset->features() == 50);
      CHECK(dataset->labels() == 20);
      CHECK(dataset->source_key() == "some key\n");
      CHECK(dataset->summary().irregularities == Irregularities{1, 2, 3});
      CHECK_FALSE(dataset->summary().is_normalized);
      std::vector<std::uint32_t> counts(20, 0);
      for (const Point& point : points) {
        for (const std::uint32_t label : point.labels) ++counts[label];
      }
      CHECK(count_labels(*dataset) == counts);
    }
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("packed: empty rows survive normalising, others get length one", "[packed]") {
  const TempFolder folder;
  const std::vector<Point> points = {
      {{1}, {2, 5}, {3.0F, 4.0F}}, {}, {{0}, {7}, {-1e-30F}}, {{}, {1, 2}, {3e38F, 3e38F}}};
  write_packed(folder.file("a"), points, true);
  const auto dataset = std::move(PackedDataset::open(folder.file("a"))).value();
  require_equal(*dataset, {{{1}, {2, 5}, {0.6F, 0.8F}},
                           {},
                           {{0}, {7}, {-1.0F}},
                           {{}, {1, 2}, {0.70710678F, 0.70710678F}}});
  CHECK(dataset->summary().is_normalized);
  CHECK(dataset->summary().used == Dimensions{8, 2});
  CHECK(dataset->summary().label_entries == 2);
  CHECK(dataset->summary().feature_entries == 5);
  CHECK(dataset->summary().features_max == 2);
}

TEST_CASE("packed: the bytes are the same on every machine", "[packed]") {
  // A golden value: a change of the format or of the arithmetic must come with a new version.
  const TempFolder folder;
  write_packed(folder.file("a"), random_points(1500, 1), true);
  const std::string bytes = read_file(folder.file("a"));
  CHECK(checksum(bytes.data(), bytes.size()) == 0xf359a5651d65c2c3u);
  CHECK((*PackedDataset::open(folder.file("a")))->fingerprint() == 0x30423549c496ae54u);
}

TEST_CASE("packed: the fingerprint tells any change of content and nothing else", "[packed]") {
  const TempFolder folder;
  const auto fingerprint = [&](const std::vector<Point>& points, const std::string& key) {
    write_packed(folder.file("a"), points, false, key);
    return (*PackedDataset::open(folder.file("a")))->fingerprint();
  };
  std::vector<Point> points = random_points(100, 3);
  const std::uint64_t original = fingerprint(points, "");
  CHECK(fingerprint(points, "another key") == original);
  points[50].values[0] = std::nextafter(points[50].values[0], 9.0F);
  CHECK(fingerprint(points, "") != original);
  points = random_points(100, 3);
  std::swap(points[3], points[4]);
  CHECK(fingerprint(points, "") != original);
}

TEST_CASE("packed: a flip of any byte is detected", "[packed]") {
  const TempFolder folder;
  write_packed(folder.file("a"), random_points(8, 5), true, "key");
  const std::string whole = read_file(folder.file("a"));
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string bad = whole;
    bad[at] = static_cast<char>(bad[at] ^ 0x10);
    write_file(folder.file("b"), bad);
    for (const std::uint64_t check_bytes_max : {std::uint64_t{0}, std::uint64_t{1} << 30}) {
      const auto dataset = PackedDataset::open(folder.file("b"), {check_bytes_max});
      const bool is_detected = !dataset.ok() || !(*dataset)->verify_all().ok();
      // The four bytes that align the index mean nothing.
      packed::Header header{};
      std::memcpy(&header, whole.data(), sizeof header);
      std::uint64_t rows_end = 0;
      std::memcpy(&rows_end, whole.data() + header.blocks_offset - 8, 8);
      if (at >= rows_end && at < header.index_offset) continue;
      INFO("byte " << at);
      REQUIRE(is_detected);
    }
  }
}

TEST_CASE("packed: a file cut short or grown is refused by name", "[packed]") {
  const TempFolder folder;
  write_packed(folder.file("a"), random_points(40, 6), true, "key");
  const std::string whole = read_file(folder.file("a"));
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 40) {
    write_file(folder.file("b"), std::string_view(whole).substr(0, size));
    const auto dataset = PackedDataset::open(folder.file("b"));
    REQUIRE_THAT(message_of(dataset), StartsWith(folder.file("b") + ": damaged packed data set"));
    REQUIRE(dataset.error().code == ErrorCode::kCorrupt);
  }
  write_file(folder.file("b"), whole + "x");
  CHECK_FALSE(PackedDataset::open(folder.file("b")).ok());
  CHECK(PackedDataset::open(folder.file("none")).error().code == ErrorCode::kNotFound);
}

TEST_CASE("packed: another version is refused as such", "[packed]") {
  const TempFolder folder;
  write_packed(folder.file("a"), random_points(4, 7), true);
  patch_header(folder.file("a"), [](packed::Header& header, std::string&) { header.version = 2; });
  const auto dataset = PackedDataset::open(folder.file("a"));
  CHECK_THAT(message_of(dataset),
             Contains("packed format version 2, this program reads version 1"));
  CHECK(dataset.error().code == ErrorCode::kVersion);
}

TEST_CASE("packed: headers that lie under a valid checksum are refused", "[packed]") {
  const TempFolder folder;
  write_packed(folder.file("a"), random_points(40, 8), true);
  const std::string whole = read_file(folder.file("a"));
  using Header = packed::Header;
  const std::vector<void (*)(Header&)> lies = {
      [](Header& h) { h.points = 0; },
      [](Header& h) { h.points = std::uint64_t{1} << 61; },
      [](Header& h) { h.points += 1; },
      [](Header& h) { h.index_offset = ~std::uint64_t{7}; },
      [](Header& h) { h.index_offset -= 8; },
      [](Header& h) { h.blocks_offset = ~std::uint64_t{0}; },
      [](Header& h) { h.key_bytes = ~std::uint64_t{0}; },
      [](Header& h) { h.features = 0; },
      [](Header& h) { h.features = 10; },
      [](Header& h) { h.labels = ~std::uint32_t{0}; }};
  for (std::size_t i = 0; i < lies.size(); ++i) {
    write_file(folder.file("a"), whole);
    patch_header(folder.file("a"), [&](Header& header, std::string&) { lies[i](header); });
    INFO("lie " << i);
    CHECK(PackedDataset::open(folder.file("a")).error().code == ErrorCode::kCorrupt);
  }
}

TEST_CASE("packed: rows that break the format under valid checksums are refused", "[packed]") {
  const TempFolder folder;
  const std::vector<Point> points = {{{1, 3}, {2, 5}, {3.0F, 4.0F}}};
  const auto patched = [&](std::size_t word, std::uint32_t value) {
    write_packed(folder.file("a"), points, false);
    patch_header(folder.file("a"), [&](packed::Header& header, std::string& bytes) {
      std::memcpy(bytes.data() + packed::kRowsOffset + 4 * word, &value, 4);
      ChecksumStream sum;
      sum.add(bytes.data() + packed::kRowsOffset, 8 * 4);
      sum.add(bytes.data() + header.index_offset, 16);
      const std::uint64_t block = sum.value();
      std::memcpy(bytes.data() + header.blocks_offset, &block, 8);
      header.blocks_checksum = checksum(&block, 8);
    });
    return PackedDataset::open(folder.file("a"));
  };
  CHECK(patched(2, 1).ok());  // the value that stands there: the patching itself is sound
  for (const auto& [word, value] : std::vector<std::pair<std::size_t, std::uint32_t>>{
           {0, 3}, {1, 0xffffffff}, {2, 3}, {3, 20}, {4, 5}, {5, 50}, {6, 0x7fc00000}}) {
    CHECK_THAT(message_of(patched(word, value)), Contains("examples 0 to 0 break the format"));
  }
}

TEST_CASE("packed: in files too large to check on opening, damage is found block by block",
          "[packed]") {
  const TempFolder folder;
  write_packed(folder.file("a"), random_points(3000, 9), true);
  std::uint64_t damaged_at = 0;
  std::string bytes = read_file(folder.file("a"));
  packed::Header header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(&damaged_at, bytes.data() + header.index_offset + 8 * 1500, 8);
  bytes[damaged_at + 9] = static_cast<char>(bytes[damaged_at + 9] ^ 1);
  write_file(folder.file("a"), bytes);
  CHECK_FALSE(PackedDataset::open(folder.file("a")).ok());
  const auto dataset = std::move(PackedDataset::open(folder.file("a"), {0})).value();
  const std::vector<std::uint64_t> sound = {0, 1023, 2048, 2999};
  CHECK(dataset->verify(sound).ok());
  CHECK(dataset->example(2999).features.size() > 0);
  const std::vector<std::uint64_t> mixed = {5, 1024};
  CHECK_THAT(message_of(dataset->verify(mixed)), Contains("examples 1024 to 2047 fail"));
  // Without verify() the process ends rather than train on it.
  const pid_t child = ::fork();
  if (child == 0) {
    if (::freopen("/dev/null", "w", stderr) == nullptr) ::_exit(0);
    (void)dataset->example(1500);
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);  // bad data
}

}  // namespace gleaner
