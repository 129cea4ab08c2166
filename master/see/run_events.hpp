// Events for the console, as they happen: the core's (core/reports.hpp) and the shell's. Plain
// immutable values. EVENTS.md specifies the JSON form of each. Unknown figures are negative.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/ids.hpp"
#include "common/model/precision.hpp"
#include "common/result.hpp"
#include "master/core/reports.hpp"

namespace gleaner {

// The values that the recipe chose for the model, with reasons.
struct RecipeChosen {
  struct Value {
    std::string key;  // "model.hidden"
    std::string value;
    std::string why;
  };

  std::string recipe;
  std::vector<Value> values;
};

struct Listening {
  std::string address;     // HOST:PORT in use
  std::string join;        // the argument for gleaner-volunteer; empty without an open invite
  bool is_trusted = true;  // whether work by this invite goes unaudited
  std::vector<std::string> other_hosts{};  // addresses of this machine that `join` could name
  std::string store{};                     // in which invites are made
};

// The run's page is served.
struct PageServed {
  std::string url;
  // url, "/#" and this key open a page that shows more; see common/access/addresses.hpp
  std::string key;
  bool has_other_port = false;  // the requested port is taken

  // The portable volunteer for machines without Gleaner.
  struct Program {
    std::string url;
    std::string machine;  // "x86-64"
    std::string sha256;
  };

  std::optional<Program> program;
  std::string others{};      // its address for other machines; empty: they see nothing
  bool takes_invite = true;  // others add an invite after "/#"
};

// A setting in effect, for people.
struct SettingShown {
  std::string key;
  std::string value;
  std::string unit;
  std::string doc;
  bool is_default = false;
};

// Facts that hold for a run's whole life.
struct RunFacts {
  std::string store;
  RoundIndex rounds = 0;
  std::uint64_t points = 0, test_points = 0;  // training and test examples
  std::uint64_t features = 0, labels = 0;
  std::uint32_t hidden = 0, output_shards = 0;
  std::uint32_t epochs = 0, batch_examples = 0, staleness = 0;
  std::uint64_t seed = 0;
  std::uint32_t local = 0;    // local volunteers
  std::string join;           // command with which a machine joins; empty: none can
  std::string audit = "off";  // whose work is audited: "off", "adaptive", "all"
  std::vector<SettingShown> settings;
  RecipeChosen recipe;
  std::optional<PageServed::Program> program;
};

// Visits the data's figures and the model's shape, by their names in JSON.
template <typename Visit>
void visit_data_fields(const RunFacts& f, const Visit& visit) {
  visit("points", f.points);
  visit("test_points", f.test_points);
  visit("features", f.features);
  visit("labels", f.labels);
  visit("hidden", f.hidden);
  visit("output_shards", f.output_shards);
}

// The run is open: it will train, or report at once that it has finished.
struct RunStarted {
  RunFacts facts;
  bool resumed = false;
  RoundIndex checkpoint = 0;  // in the store
};

// The address for other machines, with INVITE as a placeholder if it takes one.
inline std::string address_for_others(const PageServed& page) {
  return page.others + (page.others.empty() || !page.takes_invite ? "" : "/#INVITE");
}

// A round has diverged: it is trained again at half the rates.
struct RatesCut {
  RoundIndex checkpoint = 0;  // from which it is trained again
  BatchIndex batch = 0;       // the first at the lower rates
  std::string sign;           // "loss" or "code_length"
  std::string what;           // the sign as a clause
  double value = -1;          // of the discarded round
  double before = -1;         // the figure that it was compared with
  std::uint32_t cuts = 0;     // in the run so far
};

// The kind of a LogLine about a backup, or a command after it, that failed.
inline constexpr const char* kBackupFailed = "backup_failed";

// A backup of the store was made.
struct BackedUp {
  std::string folder;
  std::uint32_t backup = 0;  // its number
  RoundIndex checkpoint = 0;
  std::uint64_t bytes = 0;    // of the whole backup, also bytes shared with other backups
  double seconds = -1;        // of copying, beside the training
  double stall_seconds = -1;  // for which the store was busy
  std::uint32_t kept = 0;     // backups that exist now
};

// A clean stop before the end. The same command resumes.
struct RunStopped {
  RoundIndex checkpoint = 0;
  RoundIndex rounds = 0;
  bool round_finished = false;  // whether the open round became a checkpoint
  std::string store;
};

// P@1 of the network and of the nearest label centroids, on the same examples of the
// last evaluation.
struct CentroidComparison {
  std::uint64_t examples = 0;
  double network_p_at_1 = -1;
  double centroid_p_at_1 = -1;
  double halfwidth = 0;  // of the 95 % interval of their difference

  [[nodiscard]] bool network_is_below() const {
    return centroid_p_at_1 - network_p_at_1 > halfwidth;
  }
};

struct RunFinished {
  std::uint32_t epochs = 0;
  Precision precision;
  double examples_per_second = -1;  // over the time of all rounds, without evaluations
  std::string digest;
  RoundIndex checkpoint = 0;
  std::uint64_t evaluated = 0;    // test examples
  bool evaluated_all = false;     // whether all test examples were
  std::uint64_t test_points = 0;  // of the test set
  std::string test;               // the test file; empty: none
  std::string store;
  double seconds = -1;             // of training by this process
  bool already = false;            // whether the store held a finished run
  RoundIndex best_checkpoint = 0;  // the evaluated checkpoint with the highest P@1
  double best_p_at_1 = -1;
  std::string best_store;  // where that checkpoint is kept; empty: nowhere
  // The number of evaluations without a higher P@1 that ended the run early; 0 otherwise.
  std::uint32_t evaluations_since_best = 0;
  std::optional<CentroidComparison> centroids;  // made when a run is trained to its end
  std::string recipe;
};

// The program ends without having done its task.
struct RunFailed {
  Error error;
  ExitCode exit = ExitCode::kFailure;
};

using RunEvent = std::variant<RecipeChosen, RunStarted, Listening, PageServed, VolunteerJoined,
                              VolunteerLeft, CheckpointSaved, Evaluated, Paused, Resumed, RatesCut,
                              BackedUp, RunStopped, RunFinished, RunFailed, LogLine>;

template <typename... Kinds>
bool is_one_of(const RunEvent& event) {
  return (std::holds_alternative<Kinds>(event) || ...);
}

}  // namespace gleaner
