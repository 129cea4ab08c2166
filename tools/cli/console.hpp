// Messages to the person who runs a verb, and the guard of existing files. One thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "common/data/atomic_file.hpp"
#include "common/data/text_reader.hpp"
#include "common/result.hpp"
#include "common/time.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {

// Flags of every verb that reads a text file.
struct ReadFlags {
  std::string format = "auto";  // auto, xc or libsvm
  std::uint32_t first_feature = 1;

  [[nodiscard]] TextOptions text_options() const;
};

// Prints the error of a failed result to stderr; returns the exit status either way.
int report(const Result<void>& result);

// Refuses unless none of the files exists or `force` is given.
Result<void> guard_outputs(std::initializer_list<std::string> paths, bool force);

AtomicFile::Existing existing(bool force);

// A line on the terminal that counts up in place. Silent when stderr is not a terminal, and in the
// first half second.
class ProgressLine {
 public:
  explicit ProgressLine(std::string verb);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // `unit` as in "points". A total of 0 shows the count alone.
  void show(std::uint64_t done, std::uint64_t total, const char* unit);

 private:
  std::string verb_;
  bool is_terminal_;
  bool is_shown_ = false;
  Instant started_;
  Instant shown_;
};

// An entry of the JSON list `written` of verbs that make a data set: the file and its number of
// examples.
Json written_json(const std::string& path, std::uint64_t points);

}  // namespace gleaner
