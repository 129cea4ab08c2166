// `gleaner dataset info`: what a data set holds, and what is wrong with it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <numeric>

#include "common/data/name_table.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/data/packed_format.hpp"
#include "common/result.hpp"
#include "tools/cli/charts.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/dataset_statistics.hpp"
#include "tools/dataset/dataset_stream.hpp"

namespace gleaner {
namespace {

using Summary = DatasetStatistics::Summary;

constexpr std::uint64_t kBarWidth = 40;
constexpr double kRanksPerDecade = 24;

// The problems, as far as they are listed, and how many there are.
class Problems {
 public:
  explicit Problems(std::uint64_t limit) : limit_(limit) {}

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
  Irregularities irregularities;
  DatasetStatistics statistics;
  Summary summary;
  std::unique_ptr<PackedDataset> packed;  // null unless it is
};

Result<void> read_text(const InfoFlags& flags, TextOptions options, Problems& problems,
                       Contents& contents) {
  options.on_problem = [&](const TextProblem& problem) {
    problems.add(cell_count(problem.line), cell_count(problem.column), problem.text);
  };
  Result<std::unique_ptr<PointStream>> opened = PointStream::open(flags.source, options);
  if (!opened) return opened.error();
  PointStream& stream = **opened;
  const auto read = for_each_point(stream, "Reading", stream.announced_points().value_or(0),
                                   [&](const Point& point, std::uint64_t) {
                                     contents.statistics.add(point);
                                     return Result<void>();
                                   });
  // Earlier findings stand, whatever ended the reading.
  if (!read) problems.add(cell_none(), cell_none(), read.error().message);
  contents.form = stream.form();
  contents.irregularities = stream.irregularities();
  contents.summary = contents.statistics.summary(stream.dimensions(), contents.irregularities);
  return {};
}

Result<void> read_packed(const InfoFlags& flags, const TextOptions& options, Problems& problems,
                         Contents& contents) {
  OpenOptions open;
  open.check_bytes_max = 0;  // block by block, so that damage to one does not hide another's
  Result<std::unique_ptr<PackedDataset>> opened = PackedDataset::open(flags.source, open);
  if (!opened) return opened.error();
  const PackedDataset& dataset = **opened;
  ProgressLine progress("Reading");
  for (std::uint64_t first = 0; first < dataset.points(); first += packed::kBlockPoints) {
    const std::uint64_t index[] = {first};
    if (auto sound = dataset.verify(index); !sound) {
      problems.add(cell_none(), cell_none(), sound.error().message);
      continue;
    }
    const std::uint64_t end = std::min(first + packed::kBlockPoints, dataset.points());
    for (std::uint64_t i = first; i < end; ++i) {
      const ExampleView view = dataset.example(i);
      contents.statistics.add({{view.labels.begin(), view.labels.end()},
                               {view.features.begin(), view.features.end()},
                               {view.values.begin(), view.values.end()}});
    }
    progress.show(first, dataset.points(), "examples");
  }
  if (auto fits = check_limits(dataset, options); !fits) {
    problems.add(cell_none(), cell_none(), fits.error().message);
  }
  contents.form = "packed";
  contents.irregularities = dataset.summary().irregularities;
  contents.summary =
      contents.statistics.summary({dataset.features(), dataset.labels()}, contents.irregularities);
  contents.packed = std::move(*opened);
  return {};
}

std::string bin_name(const PowerHistogram::Bin& bin) {
  if (bin.first == bin.last) return grouped(bin.first);
  return grouped(bin.first) + "-" + grouped(bin.last);
}

std::string histogram_text(const char* title, const PowerHistogram& histogram) {
  std::string text = fmt::format("\n{}\n", title);
  std::uint64_t most = 1;
  for (const auto& bin : histogram.bins()) most = std::max(most, bin.count);
  for (const auto& bin : histogram.bins()) {
    // Rounded up, so that whatever is there shows.
    const std::uint64_t width = (bin.count * kBarWidth + most - 1) / most;
    text += fmt::format("  {:>21} {:>13} {}\n", bin_name(bin), grouped(bin.count),
                        std::string(width, '#'));
  }
  return text;
}

Json histogram_json(const PowerHistogram& histogram) {
  Json bins = Json::array();
  for (const auto& bin : histogram.bins()) {
    bins.push_back({{"first", bin.first}, {"last", bin.last}, {"count", bin.count}});
  }
  return bins;
}

// Labels by the number of their examples, the most frequent first.
struct Ranks {
  std::vector<std::uint32_t> points;
  std::uint64_t occurrences = 0;

  explicit Ranks(std::vector<std::uint32_t> by_label)
      : points(std::move(by_label)),
        occurrences(std::accumulate(points.begin(), points.end(), std::uint64_t{0})) {
    std::sort(points.begin(), points.end(), std::greater<>());
  }

  [[nodiscard]] std::uint64_t with(std::uint32_t count) const {
    return static_cast<std::uint64_t>(std::count(points.begin(), points.end(), count));
  }
};

// Ranks (from 1) that a curve on a logarithmic axis needs, with their points; up to the last label
// that occurs.
std::vector<std::pair<std::uint64_t, std::uint32_t>> curve_of(const Ranks& ranks) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> curve;
  const std::uint64_t last = ranks.points.size() - ranks.with(0);
  for (std::uint64_t rank = 1; rank <= last;) {
    curve.emplace_back(rank, ranks.points[rank - 1]);
    const auto next = static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(rank) * std::pow(10, 1 / kRanksPerDecade)));
    rank = rank == last ? last + 1 : std::clamp(next, rank + 1, last);
  }
  return curve;
}

Report classes_of(const std::vector<std::uint32_t>& by_label, const Ranks& ranks) {
  const FrequencyClasses classes(by_label);
  std::array<std::uint64_t, kFrequencyClasses> occurrences{};
  for (std::uint32_t label = 0; label < by_label.size(); ++label) {
    occurrences[static_cast<std::size_t>(classes.of(label))] += by_label[label];
  }
  Report report;
  report.section("", "By how frequent labels are");
  ReportTable& table = report.table("classes", {{"class", "", true},
                                                {"labels", "labels"},
                                                {"share", "of all"},
                                                {"points_from", "examples from"},
                                                {"points_to", "to"},
                                                {"occurrences", "occurrences"},
                                                {"occurrences_share", "of all"}});
  const std::array<const char*, kFrequencyClasses> names = {"head", "torso", "tail"};
  for (std::size_t c = 0; c < kFrequencyClasses; ++c) {
    const FrequencyClasses::Extent& extent = classes.extent(c);
    table.rows.push_back({cell_text(names[c]), cell_count(extent.labels),
                          cell_share(ratio(extent.labels, by_label.size())),
                          cell_count(extent.points_min), cell_count(extent.points_max),
                          cell_count(occurrences[c]),
                          cell_share(ratio(occurrences[c], ranks.occurrences))});
  }
  return report;
}

std::string chart_of(const Ranks& ranks, TextStyle style) {
  Curve curve{'*',
              Colour::kCyan,
              "examples that have the label; labels by rank, the most frequent first",
              {}};
  for (const auto& [rank, points] : curve_of(ranks)) {
    curve.points.emplace_back(static_cast<double>(rank), static_cast<double>(points));
  }
  ChartLayout layout;
  layout.style = style;
  layout.is_logarithmic = true;
  // Three lines a power of ten, of which the chart numbers the third.
  const double decades = std::ceil(std::log10(std::max(ranks.points[0], 10U)));
  layout.height = 3 * static_cast<std::size_t>(decades) + 1;
  const std::string chart = curve_chart({curve}, "rank", layout);
  return chart.empty() ? "" : "\n" + chart;
}

std::string as_text(const InfoFlags& flags, const Contents& contents, const NameTable& names) {
  const Summary& s = contents.summary;
  std::string text = fmt::format(
      "{} ({})\n"
      "  examples  {:>15}\n"
      "  features  {:>15}   {} occur, {:.1f} per example, values {:g} to {:g}\n"
      "  labels    {:>15}   {} occur, {:.2f} per example\n",
      flags.source, contents.form, grouped(s.points), grouped(s.dimensions.features),
      grouped(s.seen.features), ratio(s.feature_entries, s.points), s.value_min, s.value_max,
      grouped(s.dimensions.labels), grouped(s.seen.labels), ratio(s.label_entries, s.points));
  if (const PackedDataset* packed = contents.packed.get()) {
    text += fmt::format("  fingerprint {:016x}, rows {}normalised, {} bytes\n",
                        packed->fingerprint(), packed->summary().is_normalized ? "" : "not ",
                        grouped(packed->summary().file_bytes));
  }
  text += histogram_text("labels by the number of their examples", s.points_per_label);
  text += histogram_text("features by the number of their examples", s.points_per_feature);
  text += histogram_text("examples by the number of their labels", s.labels_per_point);
  text += histogram_text("examples by the number of their features", s.features_per_point);
  text += "\nmost frequent labels\n";
  for (const LabelCount& top : s.frequent_labels) {
    text += fmt::format("  {:>13} examples   {}\n", grouped(top.points),
                        names.name_or("label", top.label));
  }
  const std::vector<std::uint32_t> by_label = contents.statistics.label_points(s.dimensions.labels);
  const Ranks ranks(by_label);
  const TextStyle style = terminal_facts(stdout).style;
  text += "\n" + classes_of(by_label, ranks).for_people(style);
  if (flags.plot) text += chart_of(ranks, style);
  if (!s.warnings.empty()) text += "\nwarnings\n";
  for (const std::string& warning : s.warnings) text += fmt::format("  {}\n", warning);
  return text;
}

std::string as_json(const InfoFlags& flags, const Contents& contents, const Problems& problems,
                    const NameTable& names) {
  const Summary& s = contents.summary;
  const std::vector<std::uint32_t> by_label = contents.statistics.label_points(s.dimensions.labels);
  const Ranks ranks(by_label);
  Json json = {{"source", flags.source},
               {"form", contents.form},
               {"is_sound", problems.count() == 0},
               {"problems_count", problems.count()},
               {"problems", problems.as_json()},
               {"unsorted_points", contents.irregularities.unsorted_points},
               {"repeated_labels", contents.irregularities.repeated_labels},
               {"zero_values", contents.irregularities.zero_values},
               {"occurrences", ranks.occurrences},
               {"points_most", ranks.points[0]},
               {"points_median", ranks.points[ranks.points.size() / 2]},
               {"labels_once", ranks.with(1)},
               {"labels_never", ranks.with(0)},
               {"classes", classes_of(by_label, ranks).for_programs()["classes"]},
               {"points", s.points},
               {"features", s.dimensions.features},
               {"labels", s.dimensions.labels},
               {"features_seen", s.seen.features},
               {"labels_seen", s.seen.labels},
               {"feature_entries", s.feature_entries},
               {"label_entries", s.label_entries},
               {"features_per_point", ratio(s.feature_entries, s.points)},
               {"labels_per_point", ratio(s.label_entries, s.points)},
               {"points_without_labels", s.points_without_labels},
               {"points_without_features", s.points_without_features},
               {"value_min", s.value_min},
               {"value_max", s.value_max},
               {"is_sorted_by_label", s.is_sorted_by_label},
               {"labels_by_points", histogram_json(s.points_per_label)},
               {"features_by_points", histogram_json(s.points_per_feature)},
               {"points_by_labels", histogram_json(s.labels_per_point)},
               {"points_by_features", histogram_json(s.features_per_point)},
               {"warnings", s.warnings}};
  json["curve"] = Json::array();
  for (const auto& [rank, points] : curve_of(ranks)) {
    json["curve"].push_back({{"rank", rank}, {"points", points}});
  }
  json["frequent_labels"] = Json::array();
  for (const LabelCount& top : s.frequent_labels) {
    json["frequent_labels"].push_back({{"label", top.label},
                                       {"points", top.points},
                                       {"name", names.name_or("label", top.label)}});
  }
  if (const PackedDataset* packed = contents.packed.get()) {
    json["fingerprint"] = fmt::format("{:016x}", packed->fingerprint());
    json["is_normalized"] = packed->summary().is_normalized;
    json["file_bytes"] = packed->summary().file_bytes;
  }
  return json_document("dataset info", flags.source, json);
}

}  // namespace

Result<void> run_dataset_info(const InfoFlags& flags) {
  TextOptions options = flags.read.text_options();
  if (auto limited = take_limits(flags.like, options); !limited) return limited.error();
  Problems problems(flags.limit);
  Contents contents;
  Result<void> read = is_packed_file(flags.source) ? read_packed(flags, options, problems, contents)
                                                   : read_text(flags, options, problems, contents);
  if (!read) return read;
  NameTable names;
  const std::string companion = companion_path(flags.source, "labels.txt");
  if (!companion.empty()) {
    Result<NameTable> loaded = NameTable::load(companion);
    if (!loaded) return loaded.error();
    names = std::move(*loaded);
  }
  Result<void> printed =
      print_out(flags.json ? as_json(flags, contents, problems, names)
                           : problems.lines(flags.source) + as_text(flags, contents, names));
  if (!printed || problems.count() == 0) return printed;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} cannot be trained on as it is: {} {} to mend", flags.source,
                           grouped(problems.count()), problems.count() == 1 ? "thing" : "things")};
}

}  // namespace gleaner
