// `gleaner plot`: a run's history as pictures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "storage/run_store.hpp"

namespace CLI {
class App;
}

namespace gleaner {

// Adds the sub-command `plot` to `app`; see add_history_command. 2 also when a picture exists
// already, 1 also when gnuplot is not installed.
void add_plot_command(CLI::App& app, int& exit_status);

struct PlotSeries {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x ascends
};

struct Plot {
  std::string name;  // of the file, without its ending
  std::string title;
  std::string x_title;
  std::string y_title;
  std::vector<PlotSeries> series;  // those that have points
  bool is_from_zero = true;        // the y axis
  bool is_stepped = false;         // holds until the next point, as a number of volunteers does
};

// Everything there is to draw of a history; what was never measured has no series. Staleness comes
// from the plan, which decides it.
std::vector<Plot> plots_of(const std::vector<RoundRecord>& history, const ModelConfig& model);

// The commands for gnuplot. Requires a series.
std::string gnuplot_commands(const Plot& plot, const std::string& subject);

}  // namespace gleaner
