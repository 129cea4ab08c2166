#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
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

constexpr double kHeadShare = 0.5;
constexpr double kTailShare = 0.1;

}  // namespace

FrequencyClasses::FrequencyClasses(std::span<const std::uint32_t> label_counts)
    : classes_(label_counts.size()) {
  std::vector<std::uint32_t> order(label_counts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order,
                           [&](auto a, auto b) { return label_counts[a] > label_counts[b]; });
  double total = 0;
  for (const std::uint32_t count : label_counts) total += count;
  double before = 0;  // occurrences of labels that are more frequent
  for (const std::uint32_t label : order) {
    const std::uint32_t count = label_counts[label];
    auto own = FrequencyClass::kTorso;
    if (before >= (1 - kTailShare) * total) own = FrequencyClass::kTail;
    if (before < kHeadShare * total) own = FrequencyClass::kHead;
    before += count;
    classes_[label] = own;
    Extent& extent = extents_[static_cast<std::size_t>(own)];
    if (extent.labels++ == 0) extent.points_max = count;
    extent.points_min = count;
  }
}

namespace {

constexpr std::size_t kFrequentLabels = 10;

void count(std::vector<std::uint32_t>& counts, std::uint32_t id) {
  if (id >= counts.size()) counts.resize(std::size_t{id} + 1 + counts.size() / 2, 0);
  ++counts[id];
}

double ratio(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::vector<std::string> warnings_for(const DatasetStatistics::Summary& summary,
                                      const Irregularities& irregularities) {
  std::vector<std::string> warnings;
  const auto warn = [&](std::uint64_t number, std::uint64_t whole, const char* sentence) {
    if (number == 0) return;
    warnings.push_back(
        fmt::format("{} {} ({:.1f} %)", grouped(number), sentence, 100 * ratio(number, whole)));
  };
  warn(summary.points_without_labels, summary.points,
       "examples have no labels; they teach only what not to expect");
  warn(summary.points_without_features, summary.points,
       "examples have no features; nothing can be learned from them");
  warn(summary.dimensions.labels - summary.seen.labels, summary.dimensions.labels,
       "labels never occur; they cannot be learned here");
  warn(summary.dimensions.features - summary.seen.features, summary.dimensions.features,
       "features never occur");
  warn(irregularities.unsorted_points, summary.points,
       "examples had their features out of order; sorted when read");
  warn(irregularities.repeated_labels, summary.label_entries,
       "labels stood twice in an example; kept once");
  warn(irregularities.zero_values, summary.feature_entries,
       "features had the value zero; dropped when read");
  if (summary.is_sorted_by_label) {
    warnings.emplace_back(
        "The examples are sorted by label. Training shuffles them, but the head of the file is no "
        "sample of it; cut parts off with 'gleaner dataset split'.");
  }
  if (!summary.frequent_labels.empty()) {
    const LabelCount top = summary.frequent_labels[0];
    const double percent = 100 * ratio(top.points, summary.points);
    if (percent > 50) {
      warnings.push_back(
          fmt::format("Label {} is on {:.0f} % of the examples: naming it always "
                      "gives that precision at 1",
                      top.label, percent));
    }
  }
  return warnings;
}

}  // namespace

void PowerHistogram::add(std::uint64_t value) {
  const auto bin = static_cast<std::size_t>(std::bit_width(value));
  if (bin >= counts_.size()) counts_.resize(bin + 1, 0);
  ++counts_[bin];
}

std::vector<PowerHistogram::Bin> PowerHistogram::bins() const {
  std::vector<Bin> bins;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const std::uint64_t first = i == 0 ? 0 : std::uint64_t{1} << (i - 1);
    bins.push_back({first, i == 0 ? 0 : 2 * first - 1, counts_[i]});
  }
  return bins;
}

void DatasetStatistics::add(const Point& point) {
  Summary& s = gathered_;
  if (!point.labels.empty()) {
    const bool has_previous = s.points > s.points_without_labels;
    label_steps_ += has_previous;
    label_steps_down_ += has_previous && point.labels[0] < previous_label_;
    label_steps_up_ += has_previous && point.labels[0] > previous_label_;
    previous_label_ = point.labels[0];
  }
  ++s.points;
  s.points_without_labels += point.labels.empty();
  s.points_without_features += point.features.empty();
  s.labels_per_point.add(point.labels.size());
  s.features_per_point.add(point.features.size());
  for (const std::uint32_t label : point.labels) count(label_points_, label);
  for (const std::uint32_t feature : point.features) count(feature_points_, feature);
  for (const float value : point.values) {
    s.value_min = std::min(s.value_min, value);
    s.value_max = std::max(s.value_max, value);
  }
  s.label_entries += point.labels.size();
  s.feature_entries += point.features.size();
}

DatasetStatistics::Summary DatasetStatistics::summary(Dimensions dimensions,
                                                      const Irregularities& irregularities) const {
  Summary result = gathered_;
  result.dimensions = dimensions;
  if (result.feature_entries == 0) result.value_min = result.value_max = 0;
  std::vector<LabelCount>& top = result.frequent_labels;
  for (std::uint32_t label = 0; label < dimensions.labels; ++label) {
    const std::uint32_t points = label < label_points_.size() ? label_points_[label] : 0;
    result.points_per_label.add(points);
    if (points == 0) continue;
    ++result.seen.labels;
    const auto place = std::find_if(top.begin(), top.end(),
                                    [&](const LabelCount& other) { return other.points < points; });
    if (place == top.end() && top.size() == kFrequentLabels) continue;
    top.insert(place, {label, points});
    if (top.size() > kFrequentLabels) top.pop_back();
  }
  for (std::uint32_t feature = 0; feature < dimensions.features; ++feature) {
    const std::uint32_t points = feature < feature_points_.size() ? feature_points_[feature] : 0;
    result.points_per_feature.add(points);
    result.seen.features += points > 0;
  }
  // A handful of points may be in order by chance.
  result.is_sorted_by_label =
      label_steps_ >= 20 && label_steps_up_ > 0 && label_steps_down_ * 50 < label_steps_;
  result.warnings = warnings_for(result, irregularities);
  return result;
}

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
