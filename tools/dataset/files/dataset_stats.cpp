#include "tools/dataset/files/dataset_stats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "tools/cli/curve_chart.hpp"
#include "tools/cli/gnuplot.hpp"
#include "tools/cli/print_out.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_stream.hpp"
#include "tools/dataset/files/frequency_classes.hpp"

namespace gleaner {
namespace {

constexpr unsigned kPictureWidth = 900;
constexpr unsigned kPictureHeight = 560;
constexpr double kRanksPerDecade = 24;

// Labels by their number of points, the most frequent first.
struct LabelFrequencies {
  std::uint64_t points = 0;
  std::vector<std::uint32_t> by_label;
  std::vector<std::uint32_t> by_rank;

  [[nodiscard]] std::uint64_t occurrences() const {
    return std::accumulate(by_rank.begin(), by_rank.end(), std::uint64_t{0});
  }

  [[nodiscard]] std::uint64_t with(std::uint32_t points_of_label) const {
    return static_cast<std::uint64_t>(
        std::count(by_label.begin(), by_label.end(), points_of_label));
  }
};

Result<LabelFrequencies> count_set(const StatsFlags& flags) {
  auto stream = PointStream::open(flags.source, flags.read.text_options());
  if (!stream) return stream.error();
  LabelFrequencies found;
  ProgressLine progress("Counting");
  Point point;
  for (;;) {
    Result<bool> has_point = (*stream)->next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    for (const std::uint32_t label : point.labels) {
      if (label >= found.by_label.size()) found.by_label.resize(std::size_t{label} + 1);
      ++found.by_label[label];
    }
    if (++found.points % 1024 == 0) {
      progress.show(found.points, (*stream)->announced_points().value_or(0), "examples");
    }
  }
  found.by_label.resize((*stream)->dimensions().labels);
  found.by_rank = found.by_label;
  std::sort(found.by_rank.begin(), found.by_rank.end(), std::greater<>());
  return found;
}

// Ranks (from 1) that a curve on a logarithmic axis needs, with their points; up to the last label
// that occurs.
std::vector<std::pair<std::uint64_t, std::uint32_t>> curve_of(const LabelFrequencies& found) {
  std::vector<std::pair<std::uint64_t, std::uint32_t>> curve;
  const std::uint64_t last = found.by_rank.size() - found.with(0);
  for (std::uint64_t rank = 1; rank <= last;) {
    curve.emplace_back(rank, found.by_rank[rank - 1]);
    const auto next = static_cast<std::uint64_t>(
        std::ceil(static_cast<double>(rank) * std::pow(10, 1 / kRanksPerDecade)));
    rank = rank == last ? last + 1 : std::clamp(next, rank + 1, last);
  }
  return curve;
}

Cell share_of(std::uint64_t part, std::uint64_t whole) {
  return cell_share(whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole));
}

void add_classes(Report& report, const LabelFrequencies& found, const FrequencyClasses& classes) {
  std::array<std::uint64_t, kFrequencyClasses> occurrences{};
  for (std::uint32_t label = 0; label < found.by_label.size(); ++label) {
    occurrences[static_cast<std::size_t>(classes.of(label))] += found.by_label[label];
  }
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
                          share_of(extent.labels, found.by_label.size()),
                          cell_count(extent.points_min), cell_count(extent.points_max),
                          cell_count(occurrences[c]),
                          share_of(occurrences[c], found.occurrences())});
  }
}

Report report_of(const LabelFrequencies& found, const FrequencyClasses& classes) {
  const std::uint64_t labels = found.by_label.size();
  Report report;
  report.fact("points", "examples", cell_count(found.points));
  report.fact("labels", "labels", cell_count(labels));
  report.fact("occurrences", "occurrences", cell_count(found.occurrences()));
  report.fact("labels_per_point", "labels per example",
              cell_number(static_cast<double>(found.occurrences()) /
                              static_cast<double>(std::max<std::uint64_t>(found.points, 1)),
                          2));
  report.fact("points_most", "most frequent", cell_count(found.by_rank[0]));
  report.fact("points_median", "median label", cell_count(found.by_rank[labels / 2]));
  report.fact("labels_once", "on one example", cell_count(found.with(1)));
  report.fact("labels_never", "on none", cell_count(found.with(0)));
  add_classes(report, found, classes);
  return report;
}

std::string chart_of(const LabelFrequencies& found, TextStyle style) {
  Curve curve{'*',
              Colour::kCyan,
              "examples that have the label; labels by rank, the most frequent first",
              {}};
  for (const auto& [rank, points] : curve_of(found)) {
    curve.points.emplace_back(static_cast<double>(rank), static_cast<double>(points));
  }
  ChartLayout layout;
  layout.style = style;
  layout.is_logarithmic = true;
  // Three lines a power of ten, of which the chart numbers the third.
  const double decades = std::ceil(std::log10(std::max(found.by_rank[0], 10U)));
  layout.height = 3 * static_cast<std::size_t>(decades) + 1;
  const std::string chart = curve_chart({curve}, "rank", layout);
  return chart.empty() ? "" : "\n" + chart;
}

std::string picture_of(const StatsFlags& flags, const LabelFrequencies& found,
                       const FrequencyClasses& classes) {
  const std::uint64_t head = std::max<std::uint64_t>(classes.extent(0).labels, 1);
  const std::uint64_t torso = std::max(head + classes.extent(1).labels, head + 1);
  const std::uint64_t last = std::max<std::uint64_t>(found.by_rank.size(), torso + 1);
  std::string text = fmt::format(
      "set title {} noenhanced\n"
      "set xlabel 'labels, the most frequent first'\n"
      "set ylabel 'examples that have the label'\n"
      "set logscale xy\nset format x '10^{{%T}}'\nset format y '10^{{%T}}'\n"
      "set xrange [0.9:{}]\nset yrange [0.8:*]\n"
      "set grid xtics ytics lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
      "set key right top\n$curve << EOD\n",
      gnuplot_quoted(fmt::format("Labels of {}: {} labels, {} examples", flags.source,
                                 grouped(found.by_label.size()), grouped(found.points))),
      last);
  for (const auto& [rank, points] : curve_of(found)) text += fmt::format("{} {}\n", rank, points);
  text += "EOD\n";
  const auto part = [](std::uint64_t from, std::uint64_t to, const char* colour,
                       const std::string& name) {
    return fmt::format(
        "$curve using ($1>={} && $1<={} ? $1 : NaN):2 with points pt 7 ps 0.7 "
        "lc rgb '{}' title '{}'",
        from, to, colour, name);
  };
  const auto title = [&](const char* name, std::size_t c) {
    return fmt::format("{}: {} labels", name, grouped(classes.extent(c).labels));
  };
  return text + "plot $curve using 1:2 with lines lc rgb '#999999' notitle, \\\n  " +
         part(1, head, "#c0392b", title("head, half of all occurrences", 0)) + ", \\\n  " +
         part(head + 1, torso, "#d68910", title("torso", 1)) + ", \\\n  " +
         part(torso + 1, last, "#2471a3", title("tail, the last tenth", 2)) + "\n";
}

Json curve_json(const LabelFrequencies& found) {
  Json curve = Json::array();
  for (const auto& [rank, points] : curve_of(found)) {
    curve.push_back({{"rank", rank}, {"points", points}});
  }
  return curve;
}

}  // namespace

Result<void> run_dataset_stats(const StatsFlags& flags) {
  if (!flags.out.empty() && !is_picture_name(flags.out)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--out {}: expected a name that ends in .svg or .png", flags.out)};
  }
  if (auto guarded = guard_outputs({flags.out}, flags.force); !guarded) return guarded;
  Result<LabelFrequencies> found = count_set(flags);
  if (!found) return found.error();
  if (!flags.out.empty() && found->occurrences() == 0) {
    return Error{ErrorCode::kInvalidData,
                 flags.source + ": no example has a label: there is no curve"};
  }
  const FrequencyClasses classes(found->by_label);
  const Report report = report_of(*found, classes);
  if (!flags.out.empty()) {
    Result<void> drawn = draw_with_gnuplot(picture_of(flags, *found, classes), flags.out,
                                           kPictureWidth, kPictureHeight, existing(flags.force));
    if (!drawn) return drawn;
  }
  if (flags.json) {
    Json body = report.for_programs();
    body["curve"] = curve_json(*found);
    return print_out(json_document("dataset stats", flags.source, body));
  }
  const TextStyle style = terminal_facts(stdout).style;
  return print_out(report.for_people(style) + (flags.plot ? chart_of(*found, style) : ""));
}

}  // namespace gleaner
