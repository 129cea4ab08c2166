// Points a volunteer has fetched once, kept in one bounded file so that later epochs, connections
// and starts of the process need not fetch them again.
//
// Nothing here can make training fail: what the disk does not take is not kept, and what it has
// lost or damaged is forgotten. Every record has a checksum; a process may be killed at any byte.
// One process at a time writes a file; a second one, and one whose file cannot be used, keeps its
// points in memory under the same bound. One owner; not thread-safe. README.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace gleaner::volunteer {

// The lists of one point or of several, one behind the other; values are parallel to features.
// Labels are output neurons, where there are any.
struct ExampleLists {
  std::vector<std::uint32_t> features;
  std::vector<float> values;
  std::vector<std::uint32_t> labels;
};

class ExampleCache {
 public:
  // Opens `file`, made with its folder where missing, and reads it once to see what is whole; cuts
  // it off behind its last whole record and at `bytes_max`. One that is not ours or of another
  // version is replaced. Empty: in memory. `bytes_max` bounds the file or that memory; besides,
  // 40 bytes of memory a point say where it is.
  ExampleCache(const std::string& file, std::uint64_t bytes_max);
  ~ExampleCache();
  ExampleCache(const ExampleCache&) = delete;
  ExampleCache& operator=(const ExampleCache&) = delete;

  [[nodiscard]] bool contains(std::uint64_t point) const;

  // Keeps the point unless it is there already, and returns whether it is there now. Not kept: one
  // that would not fit, that the disk does not take, whose lists differ in length, or of more
  // entries than a frame could bring.
  bool add(std::uint64_t point, std::span<const std::uint32_t> features,
           std::span<const float> values, std::span<const std::uint32_t> labels);

  // Appends the point to `out`, bit for bit as it was added. False, with `out` as it was, when the
  // point is not there or is damaged; a damaged one is forgotten and can be added again.
  [[nodiscard]] bool read(std::uint64_t point, ExampleLists& out);

  [[nodiscard]] std::uint64_t points() const { return index_.size(); }

  // The bytes of the file or the memory; what damage has made useless counts until the file is cut
  // off there.
  [[nodiscard]] std::uint64_t bytes() const { return end_; }

  // Whether a point was refused for want of room. Behind a bound smaller ones may still fit; a
  // disk that has refused one is not asked again.
  [[nodiscard]] bool is_full() const { return is_full_; }

  [[nodiscard]] bool is_in_memory() const { return is_in_memory_; }

  // Deletes caches of earlier runs, the other *.points files in the folder of `file`: those opened
  // or written longest ago first, until the rest fits in `folder_bytes_max` together with
  // `bytes_max` of `file`. Spares files in use and files that are not caches.
  static void make_room(const std::string& file, std::uint64_t bytes_max,
                        std::uint64_t folder_bytes_max);

 private:
  struct Place {
    std::uint64_t offset : 40;
    std::uint64_t words : 24;  // of all lists
  };

  bool use_file(const std::string& file);
  void use_memory();
  bool begin_file();
  bool scan(std::uint64_t file_bytes);
  bool append(std::size_t count);
  void close_file();

  std::uint64_t bytes_max_;
  std::uint32_t name_ = 0;  // in the file's header
  int file_ = -1;           // stays so when there is neither file nor memory; then nothing is kept
  bool is_in_memory_ = false;
  bool is_full_ = false;
  bool is_writable_ = false;
  std::uint64_t end_ = 0;  // behind the last whole record
  std::unordered_map<std::uint64_t, Place> index_;
  std::vector<std::byte> record_;  // the one being written or read
};

}  // namespace gleaner::volunteer
