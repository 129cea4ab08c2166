// Readable names of labels, features or points: a text file with one name a line, the first line
// being id 0. Optional companions of a data set; ids beyond the file's end have no name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

class NameTable {
 public:
  NameTable() = default;

  // Plain or compressed. A file that cannot be read, or that has more lines than ids exist, is an
  // error.
  static Result<NameTable> load(const std::string& path);

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }

  // Empty when the id has no name.
  [[nodiscard]] std::string_view name(std::uint64_t id) const;

  // The name, or e.g. "label 17" for want of one.
  [[nodiscard]] std::string name_or(std::string_view kind, std::uint64_t id) const;

  void add(std::string_view name);

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

// "labels.txt" beside `dataset_path`, for example, if there is such a file; otherwise empty.
std::string companion_path(const std::string& dataset_path, std::string_view file_name);

}  // namespace gleaner
