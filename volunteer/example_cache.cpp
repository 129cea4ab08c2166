#include "volunteer/example_cache.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <tuple>

#include "common/data/packed_format.hpp"
#include "common/limits.hpp"
#include "common/os/files.hpp"

namespace gleaner::volunteer {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "lists are written as they are");

struct Header {
  std::uint64_t magic = 0x544e494f504e4c47;  // "GLNPOINT"
  std::uint32_t version = 2;
  std::uint32_t name = 0;  // digest of the file's name, which identifies the examples
  friend bool operator==(const Header&, const Header&) = default;
};

static_assert(sizeof(Header) == 16);

// Precedes the lists of an example.
struct Head {
  std::uint64_t point = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;

  // All lists together.
  [[nodiscard]] std::uint64_t words() const { return std::uint64_t{2} * features + labels; }

  friend bool operator==(const Head&, const Head&) = default;
};

static_assert(sizeof(Head) == 16);

constexpr std::uint64_t kChecksumBytes = sizeof(std::uint64_t);
constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kFileBytesMax = (std::uint64_t{1} << 40) - 1;
constexpr std::uint64_t kWordsMax = kFrameBytesMax / sizeof(std::uint32_t) - 1;

static_assert(kWordsMax < (1u << 24), "a place has 24 bits for it");

constexpr std::uint64_t record_bytes(std::uint64_t words) {
  return sizeof(Head) + words * sizeof(std::uint32_t) + kChecksumBytes;
}

template <typename T>
T load(const std::byte* bytes) {
  T value{};
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::byte* store(std::byte* target, const void* bytes, std::size_t count) {
  if (count > 0) std::memcpy(target, bytes, count);
  return target + count;
}

template <typename T>
const std::byte* append_to(std::vector<T>& target, const std::byte* bytes, std::size_t count) {
  const std::size_t before = target.size();
  target.resize(before + count);
  if (count > 0) std::memcpy(target.data() + before, bytes, count * sizeof(T));
  return bytes + count * sizeof(T);
}

bool is_whole(const std::byte* record, std::uint64_t count) {
  const std::uint64_t covered = count - kChecksumBytes;
  return load<std::uint64_t>(record + covered) == checksum(record, covered);
}

// Reads a file forwards in large pieces.
class Window {
 public:
  Window(int file, std::uint64_t file_bytes) : file_(file), file_bytes_(file_bytes) {}

  // Returns `count` bytes at `offset`, which lie within the file; valid until the next call. Null
  // when they cannot be read.
  const std::byte* at(std::uint64_t offset, std::uint64_t count) {
    if (offset < begin_ || offset + count > begin_ + bytes_.size()) {
      begin_ = offset;
      bytes_.resize(std::min(std::max(count, kWindowBytes), file_bytes_ - offset));
      if (!os::read_at(file_, begin_, bytes_.data(), bytes_.size())) return nullptr;
    }
    return bytes_.data() + (offset - begin_);
  }

 private:
  int file_;
  std::uint64_t file_bytes_;
  std::uint64_t begin_ = 0;
  std::vector<std::byte> bytes_;
};

struct OtherFile {
  fs::file_time_type changed;
  std::string path;
  std::uint64_t bytes = 0;
};

// Files that may be deleted, in the order of their deletion.
std::vector<OtherFile> other_files(const fs::path& own) {
  std::vector<OtherFile> others;
  const fs::path folder = own.has_parent_path() ? own.parent_path() : fs::path(".");
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const fs::path& path = entry->path();
    if (path.extension() != ".points" || path.filename() == own.filename()) continue;
    std::error_code gone;
    if (!entry->is_regular_file(gone) || entry->is_symlink(gone)) continue;
    OtherFile other{entry->last_write_time(gone), path.string(), 0};
    if (!gone) other.bytes = entry->file_size(gone);
    if (!gone) others.push_back(std::move(other));
  }
  std::sort(others.begin(), others.end(), [](const OtherFile& a, const OtherFile& b) {
    return std::tie(a.changed, a.path) < std::tie(b.changed, b.path);
  });
  return others;
}

// Deletes under the file's lock, so that no process begins to use it meanwhile.
bool delete_unused_cache(const std::string& path) {
  const int file = os::open_locked(path, false);
  if (file < 0) return false;
  Header header;
  const bool is_cache =
      os::read_at(file, 0, &header, sizeof header) && header.magic == Header().magic;
  const bool is_deleted = is_cache && os::delete_file(path);
  os::close_file(file);
  return is_deleted;
}

}  // namespace

ExampleCache::ExampleCache(const std::string& file, std::uint64_t bytes_max)
    : bytes_max_(std::min(bytes_max, kFileBytesMax)) {
  // A write beyond the limit would not fail but end the process.
  bytes_max_ = std::min(bytes_max_, os::file_bytes_max());
  if (file.empty() || !use_file(file)) use_memory();
}

ExampleCache::~ExampleCache() {
  close_file();
}

bool ExampleCache::use_file(const std::string& file) {
  if (bytes_max_ < sizeof(Header)) return false;
  std::error_code error;
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  const std::string name = fs::path(file).filename().string();
  name_ = static_cast<std::uint32_t>(checksum(name.data(), name.size()));
  file_ = os::open_locked(file, true);
  if (file_ < 0) return false;
  Header header;
  const auto there = os::file_bytes(file_);
  const std::uint64_t file_bytes = std::min(there.value_or(0), bytes_max_);
  const bool is_cache = file_bytes >= sizeof header &&
                        os::read_at(file_, 0, &header, sizeof header) &&
                        header == Header{.name = name_};
  const bool is_ready = there && (is_cache ? scan(file_bytes) : begin_file());
  if (!is_ready) {
    close_file();
    return false;
  }
  // make_room() goes by the time of last use, and a complete file is only read.
  os::touch(file_);
  is_writable_ = true;
  return true;
}

void ExampleCache::use_memory() {
  // A memory file instead of a vector: it grows without copying, and has all properties of the
  // file.
  is_in_memory_ = true;
  file_ = os::make_memory_file();
  is_writable_ = file_ >= 0 && bytes_max_ >= sizeof(Header) && begin_file();
}

bool ExampleCache::begin_file() {
  const Header header{.name = name_};
  if (!os::cut_off(file_, 0) || !os::write_at(file_, 0, &header, sizeof header)) return false;
  end_ = sizeof header;
  return true;
}

// Skips a damaged record by the length that it claims. If the length is damaged too, the following
// records fail their checksums as well, and the file is cut off like a torn record.
bool ExampleCache::scan(std::uint64_t file_bytes) {
  Window window(file_, file_bytes);
  std::uint64_t offset = sizeof(Header);
  end_ = offset;
  while (file_bytes - offset >= record_bytes(0)) {
    const std::byte* begin = window.at(offset, sizeof(Head));
    if (begin == nullptr) return false;
    const Head head = load<Head>(begin);
    const std::uint64_t bytes = record_bytes(head.words());
    if (head.words() > kWordsMax || bytes > file_bytes - offset) break;
    const std::byte* record = window.at(offset, bytes);
    if (record == nullptr) return false;
    if (is_whole(record, bytes)) {
      index_[head.point] = Place{offset & kFileBytesMax, head.words() & 0xffffffu};
      end_ = offset + bytes;
    }
    offset += bytes;
  }
  return os::cut_off(file_, end_);
}

void ExampleCache::close_file() {
  if (file_ >= 0) os::close_file(file_);
  file_ = -1;
  end_ = 0;
  index_.clear();
}

bool ExampleCache::contains(std::uint64_t point) const {
  return index_.find(point) != index_.end();
}

bool ExampleCache::add(std::uint64_t point, std::span<const std::uint32_t> features,
                       std::span<const float> values, std::span<const std::uint32_t> labels) {
  if (contains(point)) return true;
  if (features.size() != values.size() || 2 * features.size() + labels.size() > kWordsMax) {
    return false;
  }
  const Head head{point, static_cast<std::uint32_t>(features.size()),
                  static_cast<std::uint32_t>(labels.size())};
  const std::uint64_t bytes = record_bytes(head.words());
  if (!is_writable_ || end_ > bytes_max_ || bytes > bytes_max_ - end_) {
    is_full_ = true;
    return false;
  }
  record_.resize(bytes);
  std::byte* end = store(record_.data(), &head, sizeof head);
  end = store(end, features.data(), features.size_bytes());
  end = store(end, values.data(), values.size_bytes());
  end = store(end, labels.data(), labels.size_bytes());
  const std::uint64_t sum = checksum(record_.data(), bytes - kChecksumBytes);
  store(end, &sum, sizeof sum);
  const std::uint64_t offset = end_;
  if (!append(bytes)) return false;
  index_[point] = Place{offset & kFileBytesMax, head.words() & 0xffffffu};
  return true;
}

bool ExampleCache::append(std::size_t count) {
  if (!os::write_at(file_, end_, record_.data(), count)) {
    // If the file cannot be cut off now, its next opening does it.
    static_cast<void>(os::cut_off(file_, end_));
    is_writable_ = false;
    is_full_ = true;
    return false;
  }
  end_ += count;
  return true;
}

bool ExampleCache::read(std::uint64_t point, ExampleLists& out) {
  const auto found = index_.find(point);
  if (found == index_.end()) return false;
  const std::uint64_t words = found->second.words;
  record_.resize(record_bytes(words));
  const std::byte* bytes = record_.data();
  const bool is_read = os::read_at(file_, found->second.offset, record_.data(), record_.size()) &&
                       is_whole(bytes, record_.size());
  const Head head = is_read ? load<Head>(bytes) : Head{};
  if (!is_read || head.point != point || head.words() != words) {
    index_.erase(found);
    return false;
  }
  bytes = append_to(out.features, bytes + sizeof head, head.features);
  bytes = append_to(out.values, bytes, head.features);
  append_to(out.labels, bytes, head.labels);
  return true;
}

void ExampleCache::make_room(const std::string& file, std::uint64_t bytes_max,
                             std::uint64_t folder_bytes_max) {
  const std::vector<OtherFile> others = other_files(file);
  const std::uint64_t left = folder_bytes_max - std::min(bytes_max, folder_bytes_max);
  std::uint64_t bytes = 0;
  for (const OtherFile& other : others) bytes += other.bytes;
  for (const OtherFile& other : others) {
    if (bytes <= left) return;
    if (delete_unused_cache(other.path)) bytes -= other.bytes;
  }
}

}  // namespace gleaner::volunteer
