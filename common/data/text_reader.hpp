// Points out of a text file, one after the other, in constant memory. Refusals read
// "FILE:LINE:COLUMN: expected ..., found ...". Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/data/byte_source.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

// A line that is refused. Lines and columns (bytes) count from 1.
struct TextProblem {
  std::uint64_t line = 0;
  std::size_t column = 1;
  std::string text;  // "expected ..., found ..."
};

struct TextOptions {
  // kAuto: a first line of several fields without ':' is an XC header, an example with a feature
  // libsvm, and anything else refused.
  TextFormat format = TextFormat::kAuto;
  // The id that libsvm files give to the first feature: 1 by that format's convention, 0 in some.
  std::uint32_t libsvm_first_feature = 1;
  // Refuses ids beyond these, which `limits_name` ("the training set") brought along; the sentence
  // ends with `limits_remedy`, where there is one.
  std::optional<Dimensions> limits;
  std::string limits_name = "the training set";
  std::string limits_remedy;
  // Takes what would be refused: a refused line then counts as a point that is passed over, and
  // reading goes on behind it. Of empty lines one after the other it gets the first. Without this,
  // the first refusal is an error and ends the reading.
  std::function<void(const TextProblem&)> on_problem;
};

class TextReader {
 public:
  // Reads as far as the header.
  static Result<std::unique_ptr<TextReader>> open(std::unique_ptr<ByteSource> source,
                                                  const TextOptions& options);

  // False at the end, when also the number of points has been compared with the header's.
  Result<bool> next(Point& point);

  [[nodiscard]] TextFormat format() const { return format_; }  // never kAuto

  // The sizes that an XC header announces; nothing for libsvm.
  [[nodiscard]] std::optional<Dimensions> announced() const { return announced_; }

  [[nodiscard]] std::optional<std::uint64_t> announced_points() const { return announced_points_; }

  // As announced, or else of what has been read: without any label or feature in the file there is
  // still one of each, never seen.
  [[nodiscard]] Dimensions dimensions() const;

  // The points read so far.
  [[nodiscard]] std::uint64_t points() const { return points_; }

  [[nodiscard]] Dimensions used() const { return used_; }  // largest ids seen, plus one

  [[nodiscard]] const Irregularities& irregularities() const { return parser_.irregularities(); }

  [[nodiscard]] const ByteSource& source() const { return lines_.source(); }

 private:
  TextReader(std::unique_ptr<ByteSource> source, const TextOptions& options);

  Result<void> begin();
  // Refuses a first line of libsvm text that looks like a header, or like no example for sure.
  Result<void> check_first(std::string_view line);
  Result<void> parse_header(std::string_view line);
  Result<bool> next_line(std::string_view& line);
  [[nodiscard]] PointRules rules() const;
  [[nodiscard]] Result<void> refuse(std::uint64_t line, std::size_t column,
                                    std::string_view text) const;
  Result<void> check_end();

  TextOptions options_;
  LineReader lines_;
  TextFormat format_ = TextFormat::kAuto;
  std::optional<Dimensions> announced_;
  std::optional<std::uint64_t> announced_points_;
  PointParser parser_{PointRules{}};
  std::optional<std::string> pending_;  // libsvm: the first line, read to find out the format
  std::string first_line_;
  bool is_ended_ = false;
  std::uint64_t points_ = 0;
  Dimensions used_;
};

}  // namespace gleaner
