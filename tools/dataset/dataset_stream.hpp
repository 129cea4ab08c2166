// Data sets in any form, example by example: read in constant memory without a cache, and written
// in the form that the file's name asks for. One owner; not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/data/packed_dataset.hpp"
#include "common/data/packed_writer.hpp"
#include "common/data/point_writer.hpp"
#include "common/data/text_reader.hpp"
#include "common/result.hpp"

namespace gleaner {

class PointStream {
 public:
  static Result<std::unique_ptr<PointStream>> open(const std::string& path,
                                                   const TextOptions& options);
  // Reads text.
  static Result<std::unique_ptr<PointStream>> open(std::unique_ptr<ByteSource> source,
                                                   const TextOptions& options);

  // False at the end.
  Result<bool> next(Point& point);

  // Known from the start, except for libsvm text.
  [[nodiscard]] std::optional<std::uint64_t> announced_points() const;
  // For libsvm text, the dimensions so far.
  [[nodiscard]] Dimensions dimensions() const;
  [[nodiscard]] Irregularities irregularities() const;
  // "XC text", "libsvm text" or "packed".
  [[nodiscard]] const char* form() const;

  // Null unless packed.
  [[nodiscard]] const PackedDataset* packed() const { return packed_.get(); }

 private:
  PointStream() = default;

  std::unique_ptr<TextReader> text_;  // one of the two
  std::unique_ptr<PackedDataset> packed_;
  std::uint64_t next_ = 0;
};

// Calls `use` with every example and its place. A line of progress begins with `doing` and counts
// to `total` (0: not known).
Result<void> for_each_point(PointStream& stream, const char* doing, std::uint64_t total,
                            const std::function<Result<void>(const Point&, std::uint64_t)>& use);

struct SetSize {
  std::uint64_t points = 0;
  Dimensions dimensions;
};

// The size that the form announces; reads a form without one to its end.
Result<SetSize> size_of_set(const std::string& path, const TextOptions& options);

// Makes `text` refuse ids beyond the dimensions of the set `like`, in any form. An empty name
// changes nothing.
Result<void> take_limits(const std::string& like, TextOptions& text);

enum class SetForm : std::uint8_t { kXc, kLibsvm, kPacked };

// By the name's ending, .gz and .zst apart: .gleaner is packed, .svm and .libsvm are libsvm text,
// anything else XC text.
SetForm form_of_name(std::string path);
const char* form_name(SetForm form);

// Packed rows may be scaled already, and packing would scale them again.
Result<void> refuse_packing_twice(const std::string& source, SetForm form);

struct SetOutputOptions {
  SetForm form = SetForm::kXc;
  std::uint32_t first_feature = 1;  // of libsvm text
  bool normalize = true;            // of packed files
};

class SetOutput {
 public:
  // XC text announces the number of examples.
  static Result<std::unique_ptr<SetOutput>> create(const std::string& path,
                                                   const SetOutputOptions& options,
                                                   std::uint64_t points, Dimensions dimensions);

  // `point` is in the form that a parser gives.
  Result<void> add(const Point& point);
  Result<void> commit(const Irregularities& irregularities, AtomicFile::Existing existing);

 private:
  SetOutput(const SetOutputOptions& options, Dimensions dimensions)
      : options_(options), dimensions_(dimensions) {}

  SetOutputOptions options_;
  Dimensions dimensions_;
  std::unique_ptr<TextOutput> text_;  // one of the two
  std::unique_ptr<PackedWriter> packed_;
  std::string line_;
};

// Writes those examples of the source that `takes` says, `points` of `total`, into `target`.
Result<void> copy_set(const std::string& source, const TextOptions& text, std::uint64_t total,
                      const std::string& target, const SetOutputOptions& options,
                      std::uint64_t points, Dimensions dimensions, const char* doing,
                      AtomicFile::Existing existing, const std::function<bool()>& takes);

}  // namespace gleaner
