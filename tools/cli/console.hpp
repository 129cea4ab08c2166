// Talks to the person who waits for a verb, and guards files that are there already. One thread.
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

// Flags that every verb reading a text file has.
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

// One line on the terminal that counts up in place; silent when stderr is not a terminal or the
// work is done within half a second.
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

// An entry of the list `written`, which every verb that makes a set has in its JSON: the file and
// how many examples it has.
Json written_json(const std::string& path, std::uint64_t points);

}  // namespace gleaner
