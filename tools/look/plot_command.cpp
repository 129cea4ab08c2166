#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "common/model/run_plan.hpp"
#include "tools/cli/charts.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

constexpr unsigned kWidth = 900;
constexpr unsigned kHeight = 500;
constexpr std::size_t kMarkedPointsMax = 60;  // more of them would hide the line
constexpr std::array<const char*, 6> kColours = {"#2471a3", "#d68910", "#1e8449",
                                                 "#c0392b", "#7d3c98", "#566573"};

struct PlotFlags {
  std::vector<std::string> stores;
  std::string out;
  std::string format = "svg";
  bool json = false;
  bool force = false;
};

// Where on the x axis a record stands.
using AxisPlace = std::function<double(const RoundRecord&)>;
using Measure = std::function<double(const RoundRecord&)>;  // negative: not measured

void add_series(Plot& plot, const std::vector<RoundRecord>& history, std::string name,
                const AxisPlace& place, const Measure& measure) {
  PlotSeries series{std::move(name), {}};
  for (const RoundRecord& record : history) {
    const double value = measure(record);
    if (value >= 0) series.points.emplace_back(place(record), value);
  }
  if (!series.points.empty()) plot.series.push_back(std::move(series));
}

// The largest unit in which the run took more than two.
struct TimeUnit {
  const char* name;
  double seconds;
};

TimeUnit unit_for(double seconds) {
  constexpr std::array<TimeUnit, 4> kUnits = {
      {{"days", 86400}, {"hours", 3600}, {"minutes", 60}, {"seconds", 1}}};
  return *std::find_if(kUnits.begin(), kUnits.end() - 1,
                       [&](const TimeUnit& unit) { return seconds > 2 * unit.seconds; });
}

// Batches between a forward pass and the last update that it sees, on average over a round.
double mean_staleness(const RunPlan& plan, RoundIndex round) {
  double sum = 0;
  const BatchIndex first = plan.round_begin(round);
  const BatchIndex last = plan.round_end(round);
  for (BatchIndex batch = first; batch < last; ++batch) {
    sum += static_cast<double>(batch - plan.applied_before(batch));
  }
  return sum / static_cast<double>(last - first);
}

using Depths = std::array<double, 3> Precision::*;

// A plot of `measure` at 1, 3 and 5.
Plot precision_plot(const char* name, const char* title, const std::string& measure,
                    const std::vector<RoundRecord>& history, const AxisPlace& epochs,
                    Depths figures) {
  Plot plot{name, title, "epochs", measure + "k (%)", {}, false};
  for (std::size_t i = 0; i < Precision::kDepths.size(); ++i) {
    add_series(plot, history, fmt::format("{}{}", measure, Precision::kDepths[i]), epochs,
               [&](const RoundRecord& r) { return 100 * (r.precision.*figures)[i]; });
  }
  return plot;
}

Result<Report> draw_all(const PlotFlags& flags, const std::vector<Plot>& plots) {
  Report report;
  ReportTable& table = report.table(
      "pictures", {{"file", "picture", true}, {"title", "", true}, {"points", "points"}});
  std::vector<std::string> without;
  for (const Plot& plot : plots) {
    if (plot.series.empty()) {
      without.push_back(plot.name);
      continue;
    }
    const std::string path =
        (std::filesystem::path(flags.out) / (plot.name + "." + flags.format)).string();
    Result<void> drawn =
        draw_with_gnuplot(gnuplot_commands(plot, fmt::format("{}", fmt::join(flags.stores, ", "))),
                          path, kWidth, kHeight, existing(flags.force));
    if (!drawn) return drawn.error();
    std::size_t points = 0;
    for (const PlotSeries& series : plot.series) points += series.points.size();
    table.rows.push_back({cell_text(path), cell_text(plot.title), cell_count(points)});
  }
  Cell none = {without, fmt::format("{}", fmt::join(without, ", "))};
  if (without.empty()) none.text = "-";
  report.section("", "");
  report.fact("not_measured", "not measured", std::move(none));
  return report;
}

Result<std::vector<Plot>> plots_of_store(const std::string& store) {
  const auto run = open_run_to_read(store);
  if (!run) return run.error();
  const Result<std::vector<RoundRecord>> history = (*run)->history();
  if (!history) return name_folder(history.error(), store);
  if (!history->empty()) return plots_of(*history, (*run)->identity().model);
  return Error{ErrorCode::kNotFound,
               store + ": no checkpoint is written yet: there is nothing to draw"};
}

// The first curve of each plot, named by its run.
void add_run(std::vector<Plot>& plots, std::vector<Plot> own, const std::string& store) {
  if (plots.empty()) {
    plots = own;
    for (Plot& plot : plots) plot.series.clear();
  }
  for (std::size_t i = 0; i < plots.size(); ++i) {
    // Times of short and long runs have different units.
    if (own[i].series.empty() || own[i].x_title != plots[i].x_title) continue;
    own[i].series[0].name = fmt::format("{}: {}", store, own[i].series[0].name);
    plots[i].series.push_back(std::move(own[i].series[0]));
  }
}

Result<void> plot_stores(const PlotFlags& flags) {
  std::vector<Plot> plots;
  for (const std::string& store : flags.stores) {
    Result<std::vector<Plot>> own = plots_of_store(store);
    if (!own) return own.error();
    if (flags.stores.size() == 1) {
      plots = std::move(*own);
    } else {
      add_run(plots, std::move(*own), store);
    }
  }
  for (const Plot& plot : plots) {
    const auto path = std::filesystem::path(flags.out) / (plot.name + "." + flags.format);
    if (auto guarded = guard_outputs({path.string()}, flags.force); !guarded) return guarded;
  }
  std::error_code error;
  std::filesystem::create_directories(flags.out, error);
  Result<Report> report = draw_all(flags, plots);
  if (!report) return report.error();
  return print_report(*report, report_form(flags.json), "plot", flags.stores.front());
}

// gnuplot warns of a range that is one point.
std::string y_range_of(const Plot& plot) {
  double low = plot.series[0].points[0].second;
  double high = low;
  for (const PlotSeries& series : plot.series) {
    for (const auto& [x, y] : series.points) {
      low = std::min(low, y);
      high = std::max(high, y);
    }
  }
  if (plot.is_from_zero) return high > 0 ? "[0:*]" : "[0:1]";
  return high > low ? "[*:*]" : fmt::format("[{}:{}]", low - 1, high + 1);
}

}  // namespace

std::vector<Plot> plots_of(const std::vector<RoundRecord>& history, const ModelConfig& model) {
  const RunPlan plan(model);
  const AxisPlace epochs = [&](const RoundRecord& r) { return plan.epochs_in(r.batches); };
  const std::int64_t begin = history.empty() ? 0 : history.front().wall_seconds;
  const std::int64_t end = history.empty() ? 0 : history.back().wall_seconds;
  const TimeUnit unit = unit_for(static_cast<double>(end - begin));
  const AxisPlace time = [=](const RoundRecord& r) {
    return static_cast<double>(r.wall_seconds - begin) / unit.seconds;
  };
  const std::string time_title = fmt::format("{} since the first checkpoint", unit.name);

  std::vector<Plot> plots;
  Plot loss{"loss", "Loss", "epochs", "nats an example, mean over a round", {}, true};
  add_series(loss, history, "loss", epochs, [](const RoundRecord& r) { return r.loss; });
  plots.push_back(std::move(loss));
  using R = RoundRecord;
  plots.push_back(precision_plot("precision", "Precision on test examples", "P@", history, epochs,
                                 &Precision::p));
  plots.push_back(precision_plot("psp", "Propensity-scored precision on test examples", "PSP@",
                                 history, epochs, &Precision::psp));
  Plot active{"active", "Active neurons", "epochs", "neurons an example, mean over a round", {}};
  add_series(active, history, "active", epochs, [](const R& r) { return r.active; });
  plots.push_back(std::move(active));
  Plot speed{"throughput", "Throughput", time_title, "examples a second", {}};
  add_series(speed, history, "examples/s", time, [](const R& r) { return r.examples_per_second; });
  plots.push_back(std::move(speed));
  Plot volunteers{"volunteers", "Volunteers", time_title, "volunteers at the end of a round",
                  {},           true,         true};
  add_series(volunteers, history, "volunteers", time,
             [](const R& r) { return static_cast<double>(r.volunteers); });
  plots.push_back(std::move(volunteers));
  Plot staleness{"staleness", "Staleness", "epochs", "batches, mean over a round", {}};
  add_series(staleness, history, "staleness", epochs, [&](const R& r) {
    const bool is_planned = r.checkpoint > 0 && r.checkpoint <= plan.round_count();
    return is_planned ? mean_staleness(plan, r.checkpoint - 1) : -1;
  });
  plots.push_back(std::move(staleness));
  Plot bytes{"bytes", "Network", "epochs", "bytes an example and volunteer", {}};
  add_series(bytes, history, "down, to volunteers", epochs,
             [](const R& r) { return r.bytes_down; });
  add_series(bytes, history, "up, from volunteers", epochs, [](const R& r) { return r.bytes_up; });
  plots.push_back(std::move(bytes));
  return plots;
}

std::string gnuplot_commands(const Plot& plot, const std::string& subject) {
  double x_high = 0;
  for (const PlotSeries& series : plot.series) {
    for (const auto& [x, y] : series.points) x_high = std::max(x_high, x);
  }
  std::string text = fmt::format(
      "set title {} noenhanced\nset xlabel {} noenhanced\nset ylabel {} noenhanced\n"
      "set border 3 lc rgb '#555555'\nset tics nomirror textcolor rgb '#222222'\n"
      "set grid xtics ytics lc rgb '#dddddd' lt 1\n"
      "set format y '%.10g'\nset xrange [0:{}]\nset yrange {}\nset offsets 0, 0, graph 0.05, 0\n"
      "set lmargin 11\n{}",
      gnuplot_quoted(plot.title + " (" + subject + ")"), gnuplot_quoted(plot.x_title),
      gnuplot_quoted(plot.y_title), x_high > 0 ? x_high : 1, y_range_of(plot),
      // Beside the picture, where no curve can run through it.
      plot.series.size() > 1
          ? "set key outside right center vertical Left reverse spacing 1.4 noenhanced\n"
          : "unset key\nset rmargin 4\n");
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    text += fmt::format("$series{} << EOD\n", i);
    for (const auto& [x, y] : plot.series[i].points) text += fmt::format("{} {}\n", x, y);
    text += "EOD\n";
  }
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    const PlotSeries& series = plot.series[i];
    const bool is_marked = series.points.size() <= kMarkedPointsMax;
    const char* const style = plot.is_stepped ? "steps"
                              : is_marked     ? "linespoints pt 7 ps 0.5"
                                              : "lines";
    text += fmt::format("{}$series{} using 1:2 with {} lw 2 lc rgb '{}' title {}",
                        i == 0 ? "plot " : ", \\\n  ", i, style, kColours[i % kColours.size()],
                        gnuplot_quoted(series.name));
  }
  return text + "\n";
}

void add_plot_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("plot", "draw a run's history as SVG or PNG, with gnuplot");
  auto flags = std::make_shared<PlotFlags>();
  verb.add_option("store", flags->stores,
                  "folder that gleaner-master was given as --store; several are drawn as one curve "
                  "each in the same pictures")
      ->required();
  verb.add_option("--out", flags->out, "folder to write the pictures to")->required();
  verb.add_option("--format", flags->format, "svg or png")
      ->check(CLI::IsMember({"svg", "png"}))
      ->capture_default_str();
  verb.add_flag("--force", flags->force, "replace pictures that exist");
  verb.add_flag("--json", flags->json, "one JSON object; tools/JSON.md lists its fields");
  verb.footer(std::string("Draws loss, precision, propensity-scored precision, active neurons, "
                          "throughput, volunteers,\nstaleness and bytes, a picture each, of what "
                          "the history has; also while the master runs. Needs\ngnuplot (Debian: "
                          "gnuplot-nox).\n\nExamples:\n"
                          "  gleaner plot run1 --out pictures\n"
                          "  gleaner plot run1 --out pictures --format png --force\n"
                          "  gleaner plot run1 run2 run3 --out pictures\n\n") +
              kStoreExitCodes);
  verb.callback([flags, &exit_status] { exit_status = report_on_store(plot_stores(*flags)); });
}

}  // namespace gleaner
