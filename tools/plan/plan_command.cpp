#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/model/recipe.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/train/input_layer.hpp"
#include "common/train/shard_trainer.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/dataset/dataset_stream.hpp"
#include "tools/plan/plan.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kDrawnPart = 10;  // of an active set that was given
constexpr std::uint32_t kPlannedHidden = 128;
constexpr std::uint32_t kLayerBytesMax = 128 << 20;  // of the layer that is measured
constexpr BatchIndex kBatches = 48;
constexpr BatchIndex kWarmUpBatches = 8;

struct PlanFlags {
  DatasetFacts facts{
      .points = 100'000, .features = 100'000, .labels_per_point = 5, .features_per_point = 50};
  std::string data;
  RecipeRequest request{.hidden = kPlannedHidden};
  std::optional<std::uint32_t> active, round_batches, shards;
  Machines volunteers{.count = 2, .cores = 4, .mbit = 1000};
  Machines master{.count = 1, .cores = 4, .mbit = 1000};
  double memory_gib = 0;
  double round_trip_ms = 1;
  double core_speed = 0;
  bool json = false;
};

constexpr const char* kFooter =
    "Whatever is not given is what the recipe would choose for such data with a hidden layer. All\n"
    "processors are taken to be as fast as this one, which trains for some seconds. "
    "tools/plan/PLAN.md\nhas the formulas, what they leave out, and how near they come to measured "
    "runs.\n\nExamples:\n"
    "  gleaner plan --data train.txt --volunteers 8\n"
    "  gleaner plan --labels 3000000 --hidden 256 --link 100 --round-trip 50 --memory 8\n\n"
    "Exit status: 0 done, 1 failure of the system, 2 usage, 3 bad data.";

Result<void> read_facts(const std::string& file, DatasetFacts& facts) {
  auto stream = PointStream::open(file, TextOptions());
  if (!stream) return stream.error();
  std::uint64_t labels = 0, features = 0;
  Point point;
  for (facts.points = 0;; ++facts.points) {
    const Result<bool> has_point = (*stream)->next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    labels += point.labels.size();
    features += point.features.size();
  }
  const double points = std::max(1.0, static_cast<double>(facts.points));
  facts.features = (*stream)->dimensions().features;
  facts.labels = (*stream)->dimensions().labels;
  facts.labels_per_point = static_cast<double>(labels) / points;
  facts.features_per_point = static_cast<double>(features) / points;
  return {};
}

// Refused before the recipe is asked, which needs these.
Result<ModelConfig> model_of(const PlanFlags& flags) {
  ModelConfig model;
  model.points = flags.facts.points;
  model.features = flags.facts.features;
  model.labels = flags.facts.labels;
  model.output_shards = model.round_batches = 1;
  model.epochs = flags.request.epochs.value_or(1);
  model.batch_examples = flags.request.batch_examples.value_or(1);
  if (auto valid = validate(model); !valid) return valid.error();
  model = recipe(flags.facts, flags.request).model;
  model.hidden = *flags.request.hidden;
  if (flags.active) {
    model.random_negatives = *flags.active / kDrawnPart;
    model.active_cap = *flags.active - model.random_negatives;
    if (*flags.active < model.labels) model.sampling = Sampling::kLsh;
  }
  model.round_batches = flags.round_batches.value_or(model.round_batches);
  model.output_shards = flags.shards.value_or(model.output_shards);
  return model;
}

// Trains random examples for some seconds, on all processors of this machine: seconds of processor.
Result<StepCosts> measure_costs(const PlanInput& plan) {
  ModelConfig model = plan.model;
  model.labels = std::min(model.labels, kLayerBytesMax / (4 * (model.hidden + model.tables)));
  model.features = std::min(model.features, 100'000U);
  model.output_shards = std::min({model.output_shards, model.labels, 16U});
  model.epochs = 1;
  model.round_batches = kBatches + 1;  // no round ends
  model.points = std::uint64_t{model.batch_examples} * model.round_batches;
  if (auto valid = validate(model); !valid) return valid.error();
  ThreadPool pool(std::max(1U, std::thread::hardware_concurrency()));
  InputLayer input(model, pool);
  ShardTrainer output(model, pool);
  TrainUnit unit;
  for (std::uint32_t shard = 0; shard < model.output_shards; ++shard) {
    LeaseGrant grant;
    grant.lease = {ShardId{shard}, LeaseEpoch{1}};
    const NeuronRange range = ShardMap(model).neurons(grant.lease.shard);
    grant.label_counts.assign(range.end - range.begin, 1);
    if (auto begun = output.begin_load(grant); !begun) return begun.error();
    if (auto ready = output.finish_load(grant.lease); !ready) return ready.error();
    unit.leases.push_back(grant.lease);
  }
  const auto words = static_cast<std::uint32_t>(std::max(1.0, plan.features_per_point));
  const std::vector<float> values(words, 0.2F);
  Rng rng(1, Purpose::kTest);
  double input_ticks = 0, output_ticks = 0, active = 0;
  for (BatchIndex batch = 0; batch < kBatches; ++batch) {
    std::vector<std::uint32_t> features(std::size_t{model.batch_examples} * words);
    std::vector<ExampleView> examples;
    for (std::size_t i = 0; i < features.size(); ++i) {
      const std::uint32_t gap = std::max(1U, model.features / words);
      features[i] = static_cast<std::uint32_t>(i % words * gap + rng.next_below(gap));
      if (i % words == 0) examples.push_back({{}, std::span(features).subspan(i, words), values});
    }
    const std::clock_t begin = std::clock();
    const QuantizedActivations codes = input.forward(examples, batch);
    const std::clock_t middle = std::clock();
    unit.unit = UnitId{batch};
    unit.batches = {{batch, std::make_shared<const Bytes>(pack(codes)),
                     Positives{std::vector<std::uint32_t>(examples.size() + 1), {}},
                     model.output_rate}};
    const auto trained = output.train(unit);
    if (!trained) return trained.error();
    const std::clock_t end = std::clock();
    input.backward(batch, model.input_rate, examples, codes,
                   std::vector<std::int32_t>(codes.codes.size(), 100));
    if (batch < kWarmUpBatches) continue;
    input_ticks += static_cast<double>(middle - begin + std::clock() - end);
    output_ticks += static_cast<double>(end - middle);
    for (const ShardOutcome& shard : trained->result.batches[0].shards) {
      active += static_cast<double>(shard.active);
    }
  }
  const double examples = (kBatches - kWarmUpBatches) * double(model.batch_examples);
  return StepCosts{.visit = output_ticks / CLOCKS_PER_SEC / std::max(active, 1.0),
                   .feature = input_ticks / CLOCKS_PER_SEC / (examples * words)};
}

Cell bytes(double count) {
  return cell_bytes(static_cast<std::uint64_t>(count));
}

Cell per_example(double count) {
  return {count, fmt::format("{:.0f} B", count)};
}

Cell seconds(double count) {
  if (count >= 100) return cell_duration(count);
  return {count, fmt::format("{:.2f} s", count)};
}

Report report_of(const PlanInput& input, const Plan& plan) {
  const ModelConfig& m = input.model;
  Report report;
  report.section("run", "The run");
  report.fact("points", "examples", cell_count(m.points));
  report.fact("shape", "features to labels",
              cell_text(fmt::format("{} -> {} -> {}", m.features, m.hidden, m.labels)));
  report.fact("active", "active neurons", cell_number(plan.active, 0));
  report.fact("batch_examples", "batch", cell_count(m.batch_examples));
  report.fact("round_batches", "batches per round", cell_count(m.round_batches));
  report.fact("staleness", "lag", cell_count(m.staleness));
  report.fact("output_shards", "shards", cell_count(m.output_shards));
  report.fact("epochs", "epochs", cell_count(m.epochs));
  report.section("speed", "What to expect");
  report.fact("examples_per_second", "examples/s", cell_number(plan.examples_per_second, 0));
  report.fact("run_seconds", "the run", seconds(plan.run_seconds));
  report.fact("epoch_seconds", "an epoch", seconds(plan.epoch_seconds));
  report.fact("round_seconds", "a round", seconds(plan.round_seconds));
  report.fact("trip_seconds", "a batch, there and back", seconds(plan.trip_seconds));
  const ResourceWords& limit = kResources[static_cast<std::size_t>(plan.limit)];
  report.fact("limit", "limited by", cell_text(limit.name));
  report.fact("remedy", "what raises it", cell_text(limit.remedy));
  const TrafficPlan& t = plan.traffic;
  report.section("traffic", "Bytes per example, on the wire");
  ReportTable& table = report.table("directions", {{"direction", "", true},
                                                   {"units", "units"},
                                                   {"commits", "commits"},
                                                   {"volunteer", "a volunteer's link"},
                                                   {"master", "the master's link"}});
  table.rows = {{cell_text("down"), per_example(t.unit_down), per_example(0), per_example(t.down),
                 per_example(t.master_down)},
                {cell_text("up"), per_example(t.unit_up), per_example(t.commit_up),
                 per_example(t.up), per_example(t.master_up)}};
  report.fact("download_bytes", "a volunteer's download", bytes(t.download));
  report.fact("epoch_bytes", "an epoch, the master's link",
              bytes((t.master_down + t.master_up) * static_cast<double>(m.points)));
  report.section("sizes", "Memory and disk");
  report.fact("master_memory", "master", bytes(plan.master_memory));
  report.fact("volunteer_memory", "a volunteer", bytes(plan.volunteer_memory));
  report.fact("store_content", "store", bytes(plan.store_content));
  report.fact("store_most", "  until files are merged", bytes(plan.store_most));
  return report;
}

int fail(const Error& error, ExitCode status) {
  fmt::print(stderr, "gleaner plan: {}\n", error.message);
  return static_cast<int>(status);
}

int run_plan(PlanFlags& flags) {
  if (!flags.data.empty()) {
    if (auto read = read_facts(flags.data, flags.facts); !read) {
      return fail(read.error(), ExitCode::kData);
    }
  }
  const Result<ModelConfig> model = model_of(flags);
  if (!model) return fail(model.error(), ExitCode::kUsage);
  flags.volunteers.memory = flags.memory_gib * (1 << 30);
  const PlanInput input{.model = *model,
                        .features_per_point = flags.facts.features_per_point,
                        .labels_per_point = flags.facts.labels_per_point,
                        .volunteers = flags.volunteers,
                        .round_trip = flags.round_trip_ms * 1e-3,
                        .master = flags.master};
  // Before anything is measured.
  Result<Plan> plan = make_plan(input, StepCosts());
  if (!plan) return fail(plan.error(), ExitCode::kUsage);
  Result<StepCosts> costs = StepCosts{.visit = 1 / (flags.core_speed * plan->active)};
  if (flags.core_speed == 0) {
    fmt::print(stderr, "measuring this machine\n");
    costs = measure_costs(input);
    if (!costs) return fail(costs.error(), ExitCode::kFailure);
  }
  plan = make_plan(input, *costs);
  const auto printed =
      print_report(report_of(input, *plan), flags.json ? ReportForm::kJson : ReportForm::kPeople,
                   "plan", flags.data.empty() ? "this machine" : flags.data);
  return printed ? 0 : fail(printed.error(), ExitCode::kFailure);
}

}  // namespace

void add_plan_command(CLI::App& app, int& exit_status) {
  CLI::App& verb = *app.add_subcommand("plan", "what to expect of a run before there is one");
  auto flags = std::make_shared<PlanFlags>();
  const auto add = [&verb](const char* name, auto& value, const char* what) {
    return verb.add_option(name, value, what);
  };
  const auto range = [&](const char* name, auto& value, double low, double high, const char* what) {
    add(name, value, what)->capture_default_str()->check(CLI::Range(low, high));
  };
  const auto* data = add("--data", flags->data, "a data set, whose shape is read");
  const auto* labels = add("--labels", flags->facts.labels, "output neurons");
  add("--features", flags->facts.features, "of the data set")->capture_default_str();
  add("--points", flags->facts.points, "training examples")->capture_default_str();
  range("--labels-per-point", flags->facts.labels_per_point, 0, 1e4, "mean");
  range("--features-per-point", flags->facts.features_per_point, 0, 1e5, "mean");
  range("--hidden", flags->request.hidden, 1, kHiddenMax, "width of the hidden layer");
  add("--active", flags->active, "neurons chosen for an example, besides its labels");
  add("--batch", flags->request.batch_examples, "examples per batch");
  add("--staleness", flags->request.staleness, "the lag, in batches");
  add("--round-batches", flags->round_batches, "batches per round");
  add("--shards", flags->shards, "output shards");
  add("--epochs", flags->request.epochs, "how often every example is seen");
  range("--volunteers", flags->volunteers.count, 1, kOutputShardsMax, "how many");
  range("--cores", flags->volunteers.cores, 1, 1024, "of each volunteer");
  range("--memory", flags->memory_gib, 0, 1e6, "GiB of each volunteer; 0: no limit");
  range("--link", flags->volunteers.mbit, 0, 1e6, "Mbit/s of each, either way; 0: no limit");
  range("--round-trip", flags->round_trip_ms, 0, 6e4, "ms between a volunteer and the master");
  range("--master-cores", flags->master.cores, 1, 1024, "of the master");
  range("--master-link", flags->master.mbit, 0, 1e6, "Mbit/s, either way; 0: no limit");
  range("--core-speed", flags->core_speed, 0, 1e9,
        "examples per second of a core that has all shards; 0: measure this machine");
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(kFooter);
  verb.callback([flags, data, labels, &exit_status] {
    if (data->empty() == labels->empty()) throw CLI::RequiredError("Either --data or --labels");
    exit_status = run_plan(*flags);
  });
}

}  // namespace gleaner
