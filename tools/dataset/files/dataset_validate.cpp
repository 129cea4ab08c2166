#include "tools/dataset/files/dataset_validate.hpp"

#include <fmt/format.h>

#include "common/data/packed_format.hpp"
#include "tools/cli/print_out.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_statistics.hpp"
#include "tools/dataset/files/dataset_stream.hpp"

namespace gleaner {
namespace {

// The problems, as far as they are listed, and how many there are.
class Problems {
 public:
  explicit Problems(const ValidateFlags& flags) : limit_(flags.limit) {}

  void add(Cell line, Cell column, std::string_view text) {
    if (++count_ > limit_) return;
    rows_.push_back({std::move(line), std::move(column), cell_text(text)});
  }

  [[nodiscard]] std::uint64_t count() const { return count_; }

  // As compilers write them, so that editors find the place.
  [[nodiscard]] std::string lines(const std::string& file) const {
    std::string text;
    for (const auto& row : rows_) {
      text += row[0].value.is_null() ? fmt::format("{}\n", row[2].text)
                                     : fmt::format("{}:{}:{}: {}\n", file, row[0].value.dump(),
                                                   row[1].value.dump(), row[2].text);
    }
    if (count_ > rows_.size()) {
      text += fmt::format("and {} more; --limit lists more\n", grouped(count_ - rows_.size()));
    }
    return text;
  }

  [[nodiscard]] Json as_json() const {
    return table_json({"problems", {{"line", ""}, {"column", ""}, {"problem", ""}}, rows_});
  }

 private:
  std::uint64_t limit_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<Cell>> rows_;
};

// The data that was read, apart from its problems.
struct Contents {
  const char* form = "";
  std::uint64_t points = 0;  // sound ones
  Dimensions dimensions;
  Irregularities irregularities;
  std::vector<std::string> warnings;  // of a text: what gleaner dataset info warns of
};

Result<Contents> read_text(const ValidateFlags& flags, TextOptions options, Problems& problems) {
  options.on_problem = [&](const TextProblem& problem) {
    problems.add(cell_count(problem.line), cell_count(problem.column), problem.text);
  };
  Result<std::unique_ptr<PointStream>> stream = PointStream::open(flags.source, options);
  if (!stream) return stream.error();
  Contents contents;
  DatasetStatistics statistics;
  ProgressLine progress("Checking");
  Point point;
  for (;;) {
    Result<bool> has_point = (*stream)->next(point);
    if (!has_point) {
      // Earlier findings stand, whatever ended the reading.
      problems.add(cell_none(), cell_none(), has_point.error().message);
      break;
    }
    if (!*has_point) break;
    statistics.add(point);
    if (++contents.points % 1024 == 0) {
      progress.show(contents.points, (*stream)->announced_points().value_or(0), "examples");
    }
  }
  contents.form = (*stream)->form();
  contents.dimensions = (*stream)->dimensions();
  contents.irregularities = (*stream)->irregularities();
  contents.warnings = statistics.summary(contents.dimensions, {}).warnings;
  return contents;
}

Result<Contents> read_packed(const ValidateFlags& flags, const TextOptions& options,
                             Problems& problems) {
  OpenOptions open;
  open.check_bytes_max = 0;  // block by block, so that damage to one does not hide another's
  Result<std::unique_ptr<PackedDataset>> dataset = PackedDataset::open(flags.source, open);
  if (!dataset) return dataset.error();
  Contents contents{"packed", 0, {(*dataset)->features(), (*dataset)->labels()}, {}, {}};
  const PackedSummary summary = (*dataset)->summary();
  contents.irregularities = summary.irregularities;
  const std::uint64_t points = (*dataset)->points();
  ProgressLine progress("Checking");
  for (std::uint64_t first = 0; first < points; first += packed::kBlockPoints) {
    const std::uint64_t index[] = {first};
    if (auto sound = (*dataset)->verify(index); !sound) {
      problems.add(cell_none(), cell_none(), sound.error().message);
    } else {
      contents.points += std::min<std::uint64_t>(packed::kBlockPoints, points - first);
    }
    progress.show(first, points, "examples");
  }
  if (options.limits && (summary.used.features > options.limits->features ||
                         summary.used.labels > options.limits->labels)) {
    problems.add(cell_none(), cell_none(),
                 fmt::format("{}: expected ids below {} features and {} labels as {} has them, "
                             "found {} and {}",
                             flags.source, options.limits->features, options.limits->labels,
                             options.limits_name, summary.used.features, summary.used.labels));
  }
  return contents;
}

Report report_of(const Contents& contents, const Problems& problems) {
  Report report;
  report.fact("is_sound", "sound", {problems.count() == 0, problems.count() == 0 ? "yes" : "no"});
  report.fact("form", "form", cell_text(contents.form));
  report.fact("points", "sound examples", cell_count(contents.points));
  report.fact("features", "features", cell_count(contents.dimensions.features));
  report.fact("labels", "labels", cell_count(contents.dimensions.labels));
  const Irregularities& mended = contents.irregularities;
  report.fact("unsorted_points", "examples sorted", cell_count(mended.unsorted_points));
  report.fact("repeated_labels", "labels given twice", cell_count(mended.repeated_labels));
  report.fact("zero_values", "zeros dropped", cell_count(mended.zero_values));
  report.fact("problems_count", "problems", cell_count(problems.count()));
  return report;
}

}  // namespace

Result<void> run_dataset_validate(const ValidateFlags& flags) {
  TextOptions options = flags.read.text_options();
  if (auto limited = take_limits(flags.like, options); !limited) return limited.error();
  Problems problems(flags);
  Result<Contents> contents = is_packed_file(flags.source) ? read_packed(flags, options, problems)
                                                           : read_text(flags, options, problems);
  if (!contents) return contents.error();
  const Report report = report_of(*contents, problems);
  Result<void> printed;
  if (flags.json) {
    Json body = report.for_programs();
    body["problems"] = problems.as_json();
    body["warnings"] = contents->warnings;
    printed = print_out(json_document("dataset validate", flags.source, body));
  } else {
    printed = print_out(problems.lines(flags.source));
    if (printed) printed = print_report(report, ReportForm::kPeople, "", flags.source);
    for (const std::string& warning : contents->warnings) {
      if (printed) printed = print_out("warning: " + warning + "\n");
    }
  }
  if (!printed || problems.count() == 0) return printed;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} cannot be trained on as it is: {} {} to mend", flags.source,
                           grouped(problems.count()), problems.count() == 1 ? "thing" : "things")};
}

}  // namespace gleaner
