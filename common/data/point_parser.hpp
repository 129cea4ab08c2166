// Parses one line of text as an example, in the XC Repository's form `l1,l2 f:v f:v` or libsvm's;
// they differ only in the id of the first feature and in comments. Pure; not thread-safe.
//
// Blanks and tabs, in any number, separate fields and may end a line. A line that begins with a
// blank has no labels. README.md in this folder lists the outcome of every irregularity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/limits.hpp"

namespace gleaner {

// Numbers of features and labels: all ids are smaller.
struct Dimensions {
  std::uint32_t features = 0;
  std::uint32_t labels = 0;

  friend bool operator==(const Dimensions&, const Dimensions&) = default;
};

// An example (called point here). After parsing, labels and features ascend without duplicates, and
// values are finite and not zero.
struct Point {
  std::vector<std::uint32_t> labels;
  std::vector<std::uint32_t> features;
  std::vector<float> values;  // parallel to features

  friend bool operator==(const Point&, const Point&) = default;
};

enum class TextFormat : std::uint8_t { kAuto = 0, kXc = 1, kLibsvm = 2 };

// An error in a line: the column in bytes from 1, and "expected ..., found ...".
struct LineProblem {
  std::size_t column = 1;
  std::string text;
};

// Accepts ids below `count`. `reason` completes the error, e.g. "the header announces 500
// features".
struct IdLimit {
  std::uint32_t count = 0;
  std::string reason;
};

inline bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

struct PointRules {
  IdLimit features{kFeaturesMax, "Gleaner's limit"};
  IdLimit labels{kLabelsMax, "Gleaner's limit"};
  std::uint32_t first_feature = 0;  // the text's id of feature 0
  bool has_comments = false;        // '#' ends the line
};

// Irregularities that are corrected, not refused.
struct Irregularities {
  std::uint64_t unsorted_points = 0;  // examples whose features did not ascend
  std::uint64_t repeated_labels = 0;  // repeated labels of an example; kept once
  std::uint64_t zero_values = 0;      // features with value zero; dropped

  friend bool operator==(const Irregularities&, const Irregularities&) = default;
};

class PointParser {
 public:
  explicit PointParser(PointRules rules) : rules_(std::move(rules)) {}

  // Fills `point`. On an error its content is unspecified.
  std::optional<LineProblem> parse(std::string_view line, Point& point);

  [[nodiscard]] const Irregularities& irregularities() const { return irregularities_; }

 private:
  std::optional<LineProblem> parse_labels(std::string_view line, std::size_t& at, Point& point);
  std::optional<LineProblem> parse_feature(std::string_view line, std::size_t& at, Point& point);
  std::optional<LineProblem> sort_features(std::string_view line, Point& point);
  void sort_labels(Point& point);
  void drop_zeros(Point& point);

  PointRules rules_;
  Irregularities irregularities_;
  std::vector<std::pair<std::uint32_t, float>> sorting_;
};

// The text from `at` to the next blank for the "found" of an error, shortened and printable.
std::string quote_found(std::string_view line, std::size_t at);

}  // namespace gleaner
