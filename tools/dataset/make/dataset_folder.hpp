// The files of a data set that was made of something else: parts, names of what is in them, and how
// words became features. `gleaner predict --data` and `--text` read such a folder.
#pragma once

#include <string>
#include <vector>

#include "common/data/atomic_file.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"

namespace gleaner {

struct FolderPaths {
  std::string train;
  std::string test;
  std::string features;
  std::string labels;
  std::string train_points;
  std::string test_points;
  std::string words;
};

FolderPaths paths_in(const std::string& folder);

// "test.points.txt" beside "test.txt", "test.txt.zst" or "test.svm": names of its points.
std::string points_path_of(const std::string& set_path);

Result<void> write_text(const std::string& path, const std::string& text,
                        AtomicFile::Existing existing);

// labels.txt, features.txt and words.json.
Result<void> write_names(const FolderPaths& paths, const std::vector<std::string>& labels,
                         const WordModel& model, AtomicFile::Existing existing);

}  // namespace gleaner
