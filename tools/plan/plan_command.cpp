#include "tools/plan/plan_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "common/limits.hpp"
#include "common/model/recipe.hpp"
#include "common/result.hpp"
#include "tools/cli/report.hpp"
#include "tools/plan/plan.hpp"
#include "tools/plan/plan_costs.hpp"
#include "tools/plan/plan_report.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kRandomShare = 10;  // of an active set that was given

struct PlanFlags {
  DatasetFacts facts{
      .points = 100'000, .features = 100'000, .labels_per_point = 5, .features_per_point = 50};
  std::optional<std::uint32_t> hidden, active, batch, staleness, round_batches, shards,
      input_shards, epochs;
  Machines volunteers{.count = 2, .cores = 4, .mbit = 1000};
  Machines master{.count = 1, .cores = 4, .mbit = 1000};
  double commit_share = kCommitFractionUsual;
  double round_trip_ms = 1;
  bool is_one_machine = false;
  std::string input_layer = "master";
  std::string bench;
  bool json = false;
};

constexpr const char* kFooter =
    "Whatever is not given is what the recipe would choose for such data (gleaner-master --recipe\n"
    "auto). The formulas, what they leave out and how they compare with runs that were measured "
    "are\n"
    "in tools/plan/PLAN.md. All processors are taken to be as fast as the one that was "
    "measured.\n\n"
    "Examples:\n"
    "  gleaner plan --labels 670000 --features 136000 --points 490000 --volunteers 8\n"
    "  gleaner plan --labels 205000 --features 780000 --input-layer volunteers --volunteers 4\n"
    "  gleaner plan --labels 3000000 --hidden 256 --link 100 --round-trip 50 --bench machine.json\n"
    "  gleaner bench --json > machine.json\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 no figures in the file of --bench.";

// A plan is of runs with a hidden layer: what they send, and what waits for whom, follows from it.
constexpr std::uint32_t kPlannedHidden = 128;

ModelConfig model_of(const PlanFlags& flags) {
  ModelConfig model = recipe(flags.facts, {.epochs = flags.epochs,
                                           .batch_examples = flags.batch,
                                           .staleness = flags.staleness,
                                           .hidden = flags.hidden.value_or(kPlannedHidden),
                                           .commit_share = flags.commit_share})
                          .model;
  if (flags.hidden) model.hidden = *flags.hidden;
  if (flags.active) {
    model.random_negatives = *flags.active / kRandomShare;
    model.active_cap = *flags.active - model.random_negatives;
    if (model.sampling == Sampling::kAll && *flags.active < model.labels) {
      model.sampling = Sampling::kLsh;
    }
  }
  if (flags.round_batches) model.round_batches = *flags.round_batches;
  if (flags.shards) model.output_shards = *flags.shards;
  if (flags.input_shards) model.input_shards = *flags.input_shards;
  return model;
}

// Checks what the recipe needs before it can be asked.
Result<void> check_request(const PlanFlags& flags) {
  const DatasetFacts& facts = flags.facts;
  ModelConfig limits;
  limits.points = facts.points;
  limits.features = facts.features;
  limits.labels = facts.labels;
  limits.output_shards = 1;
  limits.epochs = flags.epochs.value_or(1);
  limits.batch_examples = flags.batch.value_or(1);
  limits.round_batches = 1;
  return validate(limits);
}

Result<MachineCosts> costs_for(const PlanFlags& flags, std::uint32_t hidden) {
  if (!flags.bench.empty()) return read_costs(flags.bench);
  fmt::print(stderr, "measuring this machine; --bench FILE takes figures measured before\n");
  return measure_costs(quick_shape(hidden, std::filesystem::temp_directory_path().string()));
}

int fail(const Error& error, ExitCode status) {
  fmt::print(stderr, "gleaner plan: {}\n", error.message);
  return static_cast<int>(status);
}

int run_plan(const PlanFlags& flags) {
  if (auto checked = check_request(flags); !checked) {
    return fail(checked.error(), ExitCode::kUsage);
  }
  const PlanInput input{.model = model_of(flags),
                        .features_per_point = flags.facts.features_per_point,
                        .labels_per_point = flags.facts.labels_per_point,
                        .volunteers = flags.volunteers,
                        .round_trip = flags.round_trip_ms * 1e-3,
                        .master = flags.master,
                        .is_one_machine = flags.is_one_machine,
                        .lends_input = flags.input_layer == "volunteers"};
  // Before anything is measured.
  if (auto checked = make_plan(input, MachineCosts()); !checked) {
    return fail(checked.error(), ExitCode::kUsage);
  }
  const Result<MachineCosts> costs = costs_for(flags, input.model.hidden);
  if (!costs)
    return fail(costs.error(), flags.bench.empty() ? ExitCode::kFailure : ExitCode::kData);
  const Result<Plan> plan = make_plan(input, *costs);
  if (!plan) return fail(plan.error(), ExitCode::kUsage);
  const auto printed =
      print_report(plan_report(input, *plan), flags.json ? ReportForm::kJson : ReportForm::kPeople,
                   "plan", flags.bench.empty() ? "this machine" : flags.bench);
  return printed ? 0 : fail(printed.error(), ExitCode::kFailure);
}

void add_run_options(CLI::App& verb, PlanFlags& flags) {
  verb.add_option("--labels", flags.facts.labels, "output neurons")->required();
  verb.add_option("--features", flags.facts.features, "of the data set")->capture_default_str();
  verb.add_option("--points", flags.facts.points, "training examples")->capture_default_str();
  verb.add_option("--labels-per-point", flags.facts.labels_per_point, "mean")
      ->capture_default_str();
  verb.add_option("--features-per-point", flags.facts.features_per_point, "mean")
      ->capture_default_str();
  verb.add_option("--hidden", flags.hidden,
                  "width of the hidden layer; runs without one are not planned")
      ->check(CLI::PositiveNumber);
  verb.add_option(
      "--active", flags.active,
      "neurons chosen for an example, besides its labels; what gleaner history shows of a "
      "run may be fewer than its cap");
  verb.add_option("--batch", flags.batch, "examples a batch");
  verb.add_option("--staleness", flags.staleness, "the lag, in batches");
  verb.add_option("--round-batches", flags.round_batches, "batches a round");
  verb.add_option("--commit-share", flags.commit_share,
                  "what commits may be of two volunteers' bytes, where rounds are chosen")
      ->capture_default_str()
      ->check(CLI::Range(0.01, 0.9));
  verb.add_option("--shards", flags.shards, "output shards");
  verb.add_option("--input-shards", flags.input_shards, "shards of the input layer");
  verb.add_option("--epochs", flags.epochs,
                  "how often every example is seen: counts for the store");
}

void add_machine_options(CLI::App& verb, PlanFlags& flags) {
  verb.add_option("--volunteers", flags.volunteers.count, "how many")->capture_default_str();
  verb.add_option("--cores", flags.volunteers.cores, "of each volunteer")->capture_default_str();
  verb.add_option("--link", flags.volunteers.mbit, "Mbit/s of each, either way; 0: no limit")
      ->capture_default_str();
  verb.add_option("--round-trip", flags.round_trip_ms, "ms between a volunteer and the master")
      ->capture_default_str();
  verb.add_option("--master-cores", flags.master.cores, "of the master")->capture_default_str();
  verb.add_option("--master-link", flags.master.mbit, "Mbit/s, either way; 0: no limit")
      ->capture_default_str();
  verb.add_option("--input-layer", flags.input_layer, "who holds it: master, volunteers")
      ->capture_default_str()
      ->check(CLI::IsMember({"master", "volunteers"}));
  verb.add_flag("--one-machine", flags.is_one_machine,
                "all programs share the master's cores, as in a trial on one machine");
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("plan", "what to expect of a run before there is one");
  auto flags = std::make_shared<PlanFlags>();
  add_run_options(verb, *flags);
  add_machine_options(verb, *flags);
  verb.add_option("--bench", flags->bench,
                  "figures of gleaner bench --json; without, this machine is measured")
      ->check(CLI::ExistingFile);
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(kFooter);
  verb.callback([flags, &exit_status] { exit_status = run_plan(*flags); });
}

}  // namespace gleaner
