// Reads examples from a text file, one after another, in constant memory. Errors are
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

// A refused line. Lines and columns (bytes) count from 1.
struct TextProblem {
  std::uint64_t line = 0;
  std::size_t column = 1;
  std::string text;  // "expected ..., found ..."
};

struct TextOptions {
  // kAuto: a first line of several fields without ':' is an XC header, a first line with a feature
  // is libsvm, and any other first line is refused.
  TextFormat format = TextFormat::kAuto;
  // The id of the first feature in libsvm files: usually 1, in some files 0.
  std::uint32_t libsvm_first_feature = 1;
  // Refuses larger ids. The error names the source of the limits, `limits_name`, and ends with
  // `limits_remedy` unless empty.
  std::optional<Dimensions> limits;
  std::string limits_name = "the training set";
  std::string limits_remedy;
  // Takes refusals: a refused line then counts as a skipped example, and reading goes on. Of
  // consecutive empty lines only the first is reported. Without this, the first refusal is an error
  // and ends the reading.
  std::function<void(const TextProblem&)> on_problem;
};

class TextReader {
 public:
  // Reads the header.
  static Result<std::unique_ptr<TextReader>> open(std::unique_ptr<ByteSource> source,
                                                  const TextOptions& options);

  // False at the end, after the number of examples has been compared with the header's.
  Result<bool> next(Point& point);

  [[nodiscard]] TextFormat format() const { return format_; }  // never kAuto

  // The sizes in an XC header; none for libsvm.
  [[nodiscard]] std::optional<Dimensions> announced() const { return announced_; }

  [[nodiscard]] std::optional<std::uint64_t> announced_points() const { return announced_points_; }

  // The announced dimensions, or the dimensions of the examples read so far, at least one label and
  // one feature.
  [[nodiscard]] Dimensions dimensions() const;

  // Number of examples read so far.
  [[nodiscard]] std::uint64_t points() const { return points_; }

  [[nodiscard]] Dimensions used() const { return used_; }  // largest ids read, plus one

  [[nodiscard]] const Irregularities& irregularities() const { return parser_.irregularities(); }

  [[nodiscard]] const ByteSource& source() const { return lines_.source(); }

 private:
  TextReader(std::unique_ptr<ByteSource> source, const TextOptions& options);

  Result<void> begin();
  // Refuses a first line of libsvm text that looks like a header or cannot be an example.
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
  std::optional<std::string> pending_;  // libsvm: the first line, read to detect the format
  std::string first_line_;
  bool is_ended_ = false;
  std::uint64_t points_ = 0;
  Dimensions used_;
};

}  // namespace gleaner
