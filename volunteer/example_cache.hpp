// Examples that a volunteer has fetched, kept in one bounded file for later epochs, connections and
// starts.
//
// The cache cannot make training fail. An example that the disk does not take is not kept, and a
// damaged one is forgotten. Every record has a checksum; a process may be killed at any byte. One
// process at a time writes a file; a second one, and one whose file cannot be used, keeps its
// points in memory under the same bound. One owner; not thread-safe. README.md has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace gleaner::volunteer {

// The lists of one or several examples, one after the other. Values are parallel to features.
// Labels are output neurons, and may be empty.
struct ExampleLists {
  std::vector<std::uint32_t> features;
  std::vector<float> values;
  std::vector<std::uint32_t> labels;
};

class ExampleCache {
 public:
  // Opens `file`, or makes it with its folder. Reads it once, and cuts it off behind its last whole
  // record and at `bytes_max`. Replaces a file of another kind or version. An empty name keeps
  // examples in memory. `bytes_max` bounds the file or that memory; the index takes another 40
  // bytes of memory per example.
  ExampleCache(const std::string& file, std::uint64_t bytes_max);
  ~ExampleCache();
  ExampleCache(const ExampleCache&) = delete;
  ExampleCache& operator=(const ExampleCache&) = delete;

  [[nodiscard]] bool contains(std::uint64_t point) const;

  // Keeps the example, and returns whether it is kept now. Refuses an example that does not fit or
  // that the disk does not take, whose lists differ in length, or that is larger than a frame could
  // bring.
  bool add(std::uint64_t point, std::span<const std::uint32_t> features,
           std::span<const float> values, std::span<const std::uint32_t> labels);

  // Appends the example to `out`, bit for bit as it was added. False, with `out` unchanged, when
  // the example is missing or damaged; a damaged example is forgotten and can be added again.
  [[nodiscard]] bool read(std::uint64_t point, ExampleLists& out);

  [[nodiscard]] std::uint64_t points() const { return index_.size(); }

  // Bytes of the file or the memory. Damaged records count until the file is cut off there.
  [[nodiscard]] std::uint64_t bytes() const { return end_; }

  // Whether an example was refused for lack of room. Smaller examples may still fit below the
  // disk that has refused one is not asked again.
  [[nodiscard]] bool is_full() const { return is_full_; }

  [[nodiscard]] bool is_in_memory() const { return is_in_memory_; }

  // Deletes caches of earlier runs: the other *.points files in the folder of `file`, oldest use
  // first, until the rest and `bytes_max` fit in `folder_bytes_max`. Spares files in use and files
  // that are not caches.
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
  int file_ = -1;           // -1 without file and memory: then nothing is kept
  bool is_in_memory_ = false;
  bool is_full_ = false;
  bool is_writable_ = false;
  std::uint64_t end_ = 0;  // behind the last whole record
  std::unordered_map<std::uint64_t, Place> index_;
  std::vector<std::byte> record_;  // the record being written or read
};

}  // namespace gleaner::volunteer
