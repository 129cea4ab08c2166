// Names of labels, features or examples: a text file with one name per line, beginning with id 0.
// Such files are optional; ids beyond the last line have no name.
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

  // Plain or compressed. Error: an unreadable file, or more lines than possible ids.
  static Result<NameTable> load(const std::string& path);

  // Reads names from a text with one name per line, each line ended.
  static NameTable of_lines(std::string_view text);

  // The inverse of of_lines().
  [[nodiscard]] std::string lines() const;

  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ends_.size()); }

  // Empty when the id has no name.
  [[nodiscard]] std::string_view name(std::uint64_t id) const;

  // The name, or for example "label 17" without a name.
  [[nodiscard]] std::string name_or(std::string_view kind, std::uint64_t id) const;

  void add(std::string_view name);

 private:
  std::string text_;
  std::vector<std::size_t> ends_;
};

// The files of a data set that give its numbers a meaning: names of features and labels, and the
// weights of words (word_model.hpp). A run keeps their digests among its settings, so that its
// model never answers with the names or words of another data set.
inline constexpr const char* kFeatureNamesFile = "features.txt";
inline constexpr const char* kLabelNamesFile = "labels.txt";
inline constexpr const char* kWordModelFile = "words.json";

// Beside labels.txt, if labels have texts: a data set whose examples are texts with the number of
// their label; and per label its name for people, a tab, and its notation, which may be empty.
inline constexpr const char* kLabelTextsFile = "label_texts.txt";
inline constexpr const char* kLabelTitlesFile = "label_titles.txt";

// The settings "names.FILE" with the digests of such files beside the file `data`, which has these
// dimensions. A file with another number of names does not belong to the data and is left out.
std::map<std::string, std::string> name_file_settings(const std::string& data,
                                                      const Dimensions& dimensions);

// Compares the file at `path`, which replaces `file`, with its digest in the run's settings.
// kInvalidData, with the remedy, if training used another file. No digest: any file will do.
Result<void> check_name_file(const std::map<std::string, std::string>& settings,
                             const std::string& path, const std::string& file);

// Checks all such files in `folder`.
Result<void> check_name_files(const std::map<std::string, std::string>& settings,
                              const std::string& folder);

// The path of `file_name` (such as "labels.txt") beside `dataset_path`; empty without such a file.
std::string companion_path(const std::string& dataset_path, std::string_view file_name);

}  // namespace gleaner
