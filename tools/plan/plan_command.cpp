#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "common/limits.hpp"
#include "common/machine_facts.hpp"
#include "common/os/process.hpp"
#include "master/config/config.hpp"
#include "master/in_process_training.hpp"
#include "master/recipe/recipe_chosen.hpp"
#include "master/run_data.hpp"
#include "storage/engine/memory_store.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/plan/plan.hpp"

namespace gleaner {
namespace {

constexpr BatchIndex kWarmUpBatches = 10;
// With one time that rows are hashed again, as the recipe has it every 50 batches.
constexpr BatchIndex kBatches = kWarmUpBatches + 50;
// A feature of an example is a row of memory that nothing else uses, a visit one of many to a row.
constexpr double kVisitsPerFeature = 7;

struct PlanFlags {
  MasterConfig config;
  PlanInput input{.facts = {.points = 100'000,
                            .features = 100'000,
                            .labels_per_point = 5,
                            .features_per_point = 50},
                  .volunteers = {.count = 2, .cores = 4, .mbit = 1000},
                  .round_trip = 1e-3,
                  .master = {.cores = 4, .mbit = 1000}};
  double core_speed = 0;
  bool json = false;
};

constexpr const char* kFooter =
    "Whatever is not given is what the recipe would choose. With --data some batches are trained "
    "here, on all processors, and the machines' are taken to be as fast; --labels takes a layer of "
    "128 hidden units and a usual core. tools/plan/PLAN.md has the formulas, and how near they "
    "are.\n\nExamples:\n  gleaner plan --data train.txt --volunteers 8 --deaths 0.5\n"
    "  gleaner plan --labels 3000000 --hidden 256 --link 100 --round-trip 50 --memory 8\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data.";

// Without a file the data are no more than a model. Wide rows follow from a file alone.
Result<RunData> data_of(const MasterConfig& config, const DatasetFacts& facts) {
  if (!config.data.train.empty()) return open_run_data(config, {});
  const auto hidden = config.model.get(&ModelConfig::hidden).value_or(ModelConfig{}.hidden);
  if (hidden == 0) {
    return Error{ErrorCode::kInvalidArgument, "hidden is 0: give --data, from which rows follow"};
  }
  auto model = effective_model(config, recipe(facts, recipe_request(config, hidden)).model);
  if (!model) return model.error();
  RunData data;
  data.model = *model;
  return data;
}

// Trains some batches of the run itself, all in this process: seconds of processor.
Result<StepCosts> measure_costs(const RunData& data, const PlanInput& input, double visits) {
  RunIdentity identity{data.model, {}};
  identity.model.epochs = 1;
  identity.model.round_batches =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kBatches, batches_per_epoch(data.model)));
  auto run = RunStore::create_or_open(std::make_unique<MemoryStore>(), identity, data.label_counts,
                                      data.wide_start ? data.wide_start->rows() : InitialRows());
  if (!run) return run.error();
  ThreadPool pool(machine_facts().cores);
  BatchIndex done = 0;
  const auto first = std::min<BatchIndex>(kWarmUpBatches, identity.model.round_batches / 2);
  double begin = os::processor_seconds(), end = begin;
  auto trained = train_in_process(**run, *data.train, 1, {}, pool, [&] {
    end = os::processor_seconds();
    if (++done == first) begin = end;
  });
  if (!trained) return trained.error();
  const double examples = static_cast<double>((done - first) * data.model.batch_examples);
  const double each = (end - begin) / examples;
  StepCosts costs;
  const double aside = data.model.hidden * (costs.around + costs.add_unit);
  if (!is_wide(data.model)) visits += input.facts.features_per_point * kVisitsPerFeature;
  costs.visit = std::max(each - aside, each / 2) / visits;
  return costs;
}

Cell bytes(double count) {
  return cell_bytes(static_cast<std::uint64_t>(count));
}

Cell seconds(double count) {
  if (count >= 100) return cell_duration(count);
  return {count, fmt::format("{:.2f} s", count)};
}

Report report_of(const PlanInput& input, const Plan& plan, const char* cores) {
  const ModelConfig& m = input.model;
  Report report;
  report.section("run", "The run");
  report.fact("points", "examples", cell_count(m.points));
  report.fact("shape", "features to labels",
              cell_text(fmt::format("{} -> {} -> {}", m.features, m.hidden, m.labels)));
  report.fact("round_batches", "batches per round", cell_count(m.round_batches));
  report.fact("output_shards", "shards", cell_count(m.output_shards));
  report.fact("epochs", "epochs", cell_count(m.epochs));
  report.section("speed", "What to expect");
  report.fact("assumes", "assumes",
              cell_text(fmt::format("{} volunteers of {} cores {}", input.volunteers.count,
                                    input.volunteers.cores, cores)));
  report.fact("examples_per_second", "examples/s", cell_number(plan.examples_per_second, 0));
  report.fact("run_seconds", "the run", seconds(plan.run_seconds));
  report.fact("epoch_seconds", "an epoch", seconds(plan.epoch_seconds));
  report.fact("round_seconds", "a round", seconds(plan.round_seconds));
  report.fact("trip_seconds", "a batch, there and back", seconds(plan.trip_seconds));
  report.fact("limit", "limited by", cell_text(plan.limit));
  report.fact("death_seconds", "a death", seconds(plan.death_seconds));
  report.fact("deaths_fraction", "time that deaths take", cell_share(plan.deaths_fraction, 1));
  const TrafficPlan& t = plan.traffic;
  report.section("traffic", "Bytes per example, on the wire");
  report.fact("down", "a volunteer, down", cell_number(t.down, 0));
  report.fact("up", "a volunteer, up", cell_number(t.up, 0));
  report.fact("commit_up", "  of it commits", cell_number(t.commit_up, 0));
  report.fact("download_bytes", "a volunteer's download", bytes(t.download));
  report.fact("epoch_bytes", "an epoch, the master's link",
              bytes((t.down + t.up) * plan.holders * static_cast<double>(m.points)));
  report.section("sizes", "Memory and disk");
  report.fact("master_memory", "master", bytes(plan.master_memory));
  report.fact("volunteer_memory", "a volunteer", bytes(plan.volunteer_memory));
  report.fact("store_content", "store", bytes(plan.store_content));
  report.fact("store_most", "  at most, with the best kept", bytes(plan.store_most));
  return report;
}

Result<void> run_plan(PlanFlags& flags) {
  PlanInput& input = flags.input;
  const auto data = data_of(flags.config, input.facts);
  if (!data) return data.error();
  input.model = data->model;
  input.wide_weights = data->wide_weights;
  if (data->train) input.facts = facts_of(*data->train);
  StepCosts costs;
  const char* cores = "of the usual speed, since no data are given to measure with";
  Result<Plan> plan = make_plan(input, costs);  // before anything is measured
  if (!plan) return plan.error();
  if (flags.core_speed > 0) {
    costs.visit = 1 / (flags.core_speed * plan->active);
    cores = "as --core-speed says";
  } else if (data->train) {
    print_error("measuring this machine");
    const auto measured = measure_costs(*data, input, plan->active);
    if (!measured) return measured.error();
    costs = *measured;
    cores = "like this machine's, measured now on one of them";
  }
  costs.feature = costs.visit * kVisitsPerFeature;
  plan = make_plan(input, costs);
  return print_report(report_of(input, *plan, cores), report_form(flags.json), "plan",
                      data->train ? flags.config.data.train : "this machine");
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("plan", "what to expect of a run before there is one");
  auto flags = std::make_shared<PlanFlags>();
  const auto range = [&](const char* name, auto& value, double high, const char* what,
                         double unit = 1) {
    using Value = std::remove_reference_t<decltype(value)>;
    const auto take = [&value, unit](Value v) { value = static_cast<Value>(double(v) * unit); };
    return verb.add_option_function<Value>(name, take, what)
        ->default_str(fmt::format("{:g}", static_cast<double>(value) / unit))
        ->check(CLI::Range(std::is_integral_v<Value> ? 1.0 : 0.0, high));
  };
  PlanInput& input = flags->input;
  const auto* data = verb.add_option("--data", flags->config.data.train, "a training file");
  const auto* labels =
      range("--labels", input.facts.labels, kLabelsMax, "output neurons")->default_str("");
  range("--features", input.facts.features, kFeaturesMax, "of the data set");
  range("--points", input.facts.points, 1ULL << 40, "training examples");
  range("--labels-per-point", input.facts.labels_per_point, 1e4, "mean");
  range("--features-per-point", input.facts.features_per_point, 1e5, "mean");
  const auto model = [&](const char* name, std::uint32_t ModelConfig::*m, const char* what) {
    const auto take = [flags, m](std::uint32_t value) { flags->config.model.set(m, value); };
    return verb.add_option_function<std::uint32_t>(name, take, what);
  };
  model("--hidden", &ModelConfig::hidden, "width of the hidden layer; 0: none");
  model("--active", &ModelConfig::active_cap, "neurons chosen for an example, besides its labels");
  model("--batch", &ModelConfig::batch_examples, "examples per batch")
      ->check(CLI::Range(1U, kBatchExamplesMax));
  model("--staleness", &ModelConfig::staleness, "the lag, in batches");
  model("--round-batches", &ModelConfig::round_batches, "batches per round");
  model("--shards", &ModelConfig::output_shards, "output shards");
  model("--input-shards", &ModelConfig::input_shards, "input shards");
  model("--epochs", &ModelConfig::epochs, "how often every example is seen");
  range("--volunteers", input.volunteers.count, kOutputShardsMax, "how many");
  range("--cores", input.volunteers.cores, 1024, "of each volunteer");
  range("--memory", input.volunteers.memory, 1e6, "GiB of each volunteer; 0: no limit", kGib);
  range("--link", input.volunteers.mbit, 1e6, "Mbit/s of each, either way; 0: no limit");
  range("--round-trip", input.round_trip, 6e4, "ms between a volunteer and the master", 1e-3);
  range("--deaths", input.volunteers.deaths, 3600,
        "of each volunteer, per hour, without a farewell");
  range("--master-cores", input.master.cores, 1024, "of the master");
  range("--master-memory", input.master.memory, 1e6, "GiB; 0: no limit", kGib);
  range("--master-link", input.master.mbit, 1e6, "Mbit/s, either way; 0: no limit");
  range("--disk", input.master.disk, 1e6, "GiB for the store; 0: no limit", kGib);
  verb.add_flag("--lend-input", input.lends_input, "volunteers hold the input layer too");
  range("--core-speed", flags->core_speed, 1e9,
        "examples per second of a core that has all shards; 0: see below");
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(kFooter);
  verb.callback([flags, data, labels, &exit_status] {
    if (data->empty() == labels->empty()) throw CLI::RequiredError("Either --data or --labels");
    exit_status = report(run_plan(*flags));
  });
}

}  // namespace gleaner
