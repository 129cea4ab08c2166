// Readable names of labels, features or points: a text file with one name a line, the first line
// being id 0. Optional companions of a data set; ids beyond the file's end have no name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

class NameTable {
 public:
  NameTable() = default;

  // Plain or compressed. A file that cannot be read, or that has more lines than ids exist, is an
  // error.
  static Result<NameTable> load(const std::string& path);

  // The names in a text that has one a line, each line ended.
  static NameTable of_lines(std::string_view text);

  // Such a text.
  [[nodiscard]] std::string lines() const;

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

// The files beside a data set that say what its numbers mean: names of features and labels, and how
// words are weighed (word_model.hpp). A run keeps their digests among its settings, so that its
// model never answers with the names or words of another data set.
inline constexpr const char* kFeatureNamesFile = "features.txt";
inline constexpr const char* kLabelNamesFile = "labels.txt";
inline constexpr const char* kWordModelFile = "words.json";

// The settings "names.FILE" with the digests of what lies beside the file `data`, which has these
// dimensions. A file that has another number of names is not the data's, and is left out.
std::map<std::string, std::string> name_file_settings(const std::string& data,
                                                      const Dimensions& dimensions);

// kInvalidData, with what to do, when the file at `path` stands for `file` and a run of these
// settings learned with another one. A run that did not see such a file takes any.
Result<void> check_name_file(const std::map<std::string, std::string>& settings,
                             const std::string& path, const std::string& file);

// Does so for all such files in `folder`.
Result<void> check_name_files(const std::map<std::string, std::string>& settings,
                              const std::string& folder);

// "labels.txt" beside `dataset_path`, for example, if there is such a file; otherwise empty.
std::string companion_path(const std::string& dataset_path, std::string_view file_name);

}  // namespace gleaner
