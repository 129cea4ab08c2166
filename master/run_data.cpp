#include "master/run_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "common/access/key_pair.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/limits.hpp"
#include "common/machine_facts.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/recipe.hpp"
#include "common/train/input_trainer.hpp"
#include "common/train/self_test/self_test.hpp"
#include "common/train/shard_trainer.hpp"
#include "common/train/wide/wide_trainer.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

constexpr double kFractionOfTraining = 0.1;
// Fewer would leave P@1 uncertain by more than three percent either way.
constexpr std::uint64_t kExamplesMin = 1000;
// Training passes over the row of an active neuron: for its score, for the gradient of the hidden
// layer, and for its update.
constexpr double kTrainingPasses = 3;
// A multiplication of exact scoring costs a fourth of one of training. Scoring goes through the
// rows in order and uses a block of them for many examples while it is in the cache; training
// fetches scattered rows from memory. (machine_bench: a visit of two to a row costs 42 ns in
// three passes, a score 3.4 ns.)
constexpr double kScoringDiscount = 4;

// Neurons of the output layer that an example trains, besides its true labels. What the tables
// find is known only later; they are taken to fill the active set.
double negatives(const ModelConfig& model) {
  const double labels = model.labels;
  if (model.sampling == Sampling::kAll) return labels;
  const double active = model.active_cap;
  const double random = model.sampling == Sampling::kLsh ? model.random_negatives : 0;
  return std::min(labels, active + random);
}

}  // namespace

std::uint64_t evaluation_sample(const ModelConfig& model, std::uint64_t label_entries,
                                std::uint32_t every_epochs, std::uint64_t test_examples) {
  const std::uint32_t epochs =
      every_epochs == 0 ? model.epochs
                        : std::min(model.epochs, std::max(every_epochs, epochs_per_round(model)));
  // The width of the hidden layer is a factor of both kinds of work, so it is left out.
  const double neurons_trained = epochs * (static_cast<double>(model.points) * negatives(model) +
                                           static_cast<double>(label_entries));
  const double training = neurons_trained * kTrainingPasses;
  const double scoring_an_example = model.labels / kScoringDiscount;
  const double affordable = kFractionOfTraining * training / scoring_an_example;
  if (affordable >= static_cast<double>(test_examples)) return test_examples;
  return std::min(test_examples, std::max(kExamplesMin, static_cast<std::uint64_t>(affordable)));
}

RecipeChosen recipe_chosen(const MasterConfig& config, const std::vector<RecipeChoice>& choices,
                           const ModelConfig& model) {
  const std::map<std::string, std::string> values = effective_settings(config, model);
  RecipeChosen chosen{values.at("model.recipe"), {}};
  for (const RecipeChoice& choice : choices) {
    if (config.model.has(choice.field)) continue;
    const std::string key = "model." + choice.field;
    chosen.values.push_back({key, values.at(key), choice.why});
  }
  return chosen;
}

DatasetFacts facts_of(const PackedDataset& train) {
  const PackedSummary& summary = train.summary();
  DatasetFacts facts;
  facts.points = train.points();
  facts.features = train.features();
  facts.labels = train.labels();
  const auto points = static_cast<double>(train.points());
  facts.labels_per_point = static_cast<double>(summary.label_entries) / points;
  facts.features_per_point = static_cast<double>(summary.feature_entries) / points;
  return facts;
}

RecipeRequest recipe_request(const MasterConfig& config, std::optional<std::uint32_t> hidden) {
  const ModelOverrides& set = config.model;
  return {config.recipe,
          set.get(&ModelConfig::epochs),
          set.get(&ModelConfig::batch_examples),
          set.get(&ModelConfig::staleness),
          hidden,
          config.commit_share};
}

namespace {

// The identity of the run that the store holds, if there is one that can be read: opening it tells
// what is wrong.
std::optional<RunIdentity> stored_identity(const std::string& folder) {
  auto store = open_rocks_store(folder, OpenMode::kReadOnly);
  if (!store) return std::nullopt;
  const auto run = RunStore::open(std::move(*store));
  if (!run) return std::nullopt;
  return (*run)->identity();
}

// A run keeps the sample that it began with, though it may be given more epochs since.
std::optional<std::uint64_t> sample_in_effect(const MasterConfig& config, const RunData& data,
                                              const std::optional<RunIdentity>& stored) {
  if (config.evaluation.sample) return config.evaluation.sample;
  if (stored) {
    if (const auto kept = stored_evaluation_sample(stored->settings)) return kept;
  }
  if (!data.test) return std::nullopt;
  const std::uint64_t sample =
      evaluation_sample(data.model, data.train->summary().label_entries,
                        config.core.evaluate_every_epochs, data.test->points());
  return sample == data.test->points() ? kEvaluateAll : sample;
}

// A run on the same data keeps what a recipe once chose for it, so that another number of epochs or
// another version of the recipe does not make it another run.
void keep_choices(Recipe& recipe, const ModelConfig& stored) {
  if (stored.data_fingerprint != recipe.model.data_fingerprint) return;
  for_each_model_key([&](const auto& field) {
    for (const RecipeChoice& choice : recipe.choices) {
      if (choice.field == field.name) recipe.model.*field.member = stored.*field.member;
    }
  });
}

// A header's sizes cost nothing to write; what they ask of this machine is refused before it is
// asked for.
Result<void> check_memory(const MasterConfig& config, const ModelConfig& model) {
  const std::uint64_t has = machine_facts().memory_bytes;
  if (is_wide(model)) {
    // Three numbers per feature, and a stored row per label at least, with its features.
    const std::uint64_t least = std::uint64_t{model.features} * 3 * sizeof(double) +
                                std::uint64_t{model.labels} * kWideWeights * 2 * sizeof(float);
    if (least <= has) return {};
    return Error{
        ErrorCode::kResources,
        fmt::format("{}: rows of {} labels over {} features take {} GiB at least, and this "
                    "machine has {} GiB: check the sizes in the file's first line",
                    config.data.train, model.labels, model.features, least >> 30, has >> 30)};
  }
  if (config.run.input_layer != InputHolder::kMaster) return {};
  const std::uint64_t needed = std::uint64_t{model.features} * model.hidden * sizeof(float);
  if (needed <= has) return {};
  return Error{
      ErrorCode::kResources,
      fmt::format("{}: an input layer of {} features x {} hidden units takes {} GiB, and "
                  "this machine has {} GiB: check the sizes in the file's first line, "
                  "lower --hidden, or let volunteers hold it (--input-layer volunteers)",
                  config.data.train, model.features, model.hidden, needed >> 30, has >> 30)};
}

Result<void> open_training_set(const MasterConfig& config, const PackOptions& options,
                               RunData& data) {
  auto train = open_or_pack(config.data.train, options);
  if (!train) return train.error();
  data.train = std::move(*train);
  // Damage is found here, as an error, and not in the middle of training.
  if (auto intact = data.train->verify_all(); !intact) return intact.error();
  const PackedSummary summary = data.train->summary();
  if (summary.label_entries > 0 && summary.feature_entries > 0) return {};
  const char* const missing = summary.label_entries == 0 ? "label" : "feature";
  return Error{ErrorCode::kInvalidData,
               fmt::format("{}: there is nothing to train on: none of its {} examples has a {}; "
                           "'gleaner dataset info {}' shows what was read",
                           config.data.train, data.train->points(), missing, config.data.train)};
}

Result<void> open_test_set(const MasterConfig& config, PackOptions options, RunData& data) {
  if (config.data.test.empty()) return {};
  options.text.limits = Dimensions{data.train->features(), data.train->labels()};
  options.text.limits_name = config.data.train;
  options.text.limits_remedy = fmt::format(
      "; gleaner dataset convert {} --like {} --output FILE makes a training file with "
      "room for them",
      config.data.train, config.data.test);
  auto test = open_or_pack(config.data.test, options);
  if (!test) return test.error();
  if ((*test)->features() > data.train->features() || (*test)->labels() > data.train->labels()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{} has {} features and {} labels, more than the {} and {} of {}{}",
                             config.data.test, (*test)->features(), (*test)->labels(),
                             data.train->features(), data.train->labels(), config.data.train,
                             options.text.limits_remedy)};
  }
  if ((*test)->points() > 0) data.test = std::move(*test);
  return {};
}

// The width that the operator, the stored run or the initial model fixes; otherwise the recipe
// chooses it.
std::optional<std::uint32_t> hidden_in_effect(const MasterConfig& config, const RunData& data,
                                              const std::optional<RunIdentity>& stored) {
  if (const auto set = config.model.get(&ModelConfig::hidden)) return set;
  if (data.initial) return data.initial->hidden();
  if (stored) return stored->model.hidden;
  return std::nullopt;
}

// Sets the model's wide_rows, which a run keeps, and the data's wide_weights.
Result<void> size_wide_rows(ModelConfig& model, const std::optional<RunIdentity>& stored,
                            RunData& data) {
  if (!is_wide(model)) return {};
  const auto differ = [&] {
    ModelConfig same = stored->model;
    same.epochs = model.epochs;
    same.wide_rows = 0;
    return !model_differences(model, same).empty();
  };
  const bool goes_on = stored && !differ();
  if (goes_on) {
    model.wide_rows = stored->model.wide_rows;
    if (const auto weights = stored_wide_weights(stored->settings)) {
      data.wide_weights = *weights;
      return {};
    }
  }
  auto start = WideStart::open(model, *data.train, data.initial.get());
  if (!start) return start.error();
  const auto sizes = (*start)->sizes();
  if (!sizes) return sizes.error();
  data.wide_weights = sizes->weights;
  if (goes_on) return {};
  data.wide_start = std::move(*start);
  model.wide_rows = sizes->rows;
  if (model.wide_rows <= kWideRowsMax) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a shard would have more than {} rows of {} weights: choose more "
                           "--output-shards or fewer --wide-features",
                           kWideRowsMax, kWideWeights)};
}

// Notes signs that the training file is not the intended one.
void note_oddities(const MasterConfig& config, const RunData& data,
                   const std::function<void(const std::string&)>& on_note) {
  if (!on_note) return;
  const auto& counts = data.label_counts;
  const auto most = std::ranges::max_element(counts);
  if (const auto unseen = std::ranges::count(counts, 0U); unseen > 0) {
    on_note(fmt::format("{}: {} of {} labels never occur; they cannot be learned here",
                        config.data.train, unseen, counts.size()));
  }
  if (2 * std::uint64_t{*most} > data.train->points()) {
    on_note(
        fmt::format("{}: label {} is on {} of {} examples; naming it always gives that "
                    "precision at 1",
                    config.data.train, most - counts.begin(), *most, data.train->points()));
  }
}

std::string initial_model_note(const MasterConfig& config, const RunData& data,
                               const ModelConfig& model) {
  return fmt::format(
      "{}: the run begins with its {} features, {} and {} labels; {} features and "
      "{} labels of the training file are not among them and begin as in any run",
      config.data.init_from, data.initial->features(),
      is_wide(model) ? std::string("no hidden layer")
                     : fmt::format("{} hidden units", data.initial->hidden()),
      data.initial->labels(), model.features - data.initial->features(),
      model.labels - data.initial->labels());
}

}  // namespace

Result<RunData> open_run_data(const MasterConfig& config,
                              const std::function<void(const std::string&)>& on_note) {
  RunData data;
  PackOptions options;
  options.normalize = config.data.l2_normalise;
  options.cache_dir = config.data.cache_dir;
  options.on_note = on_note;
  if (auto opened = open_training_set(config, options, data); !opened) return opened.error();
  if (auto opened = open_test_set(config, options, data); !opened) return opened.error();
  data.label_counts = count_labels(*data.train);
  note_oddities(config, data, on_note);
  if (!config.data.init_from.empty()) {
    auto initial = InitialModel::open(config.data.init_from);
    if (!initial) return initial.error();
    data.initial = std::move(*initial);
  }
  const std::optional<RunIdentity> stored = stored_identity(config.run.store);
  Recipe proposed =
      recipe(facts_of(*data.train), recipe_request(config, hidden_in_effect(config, data, stored)));
  proposed.model.data_fingerprint = data.train->fingerprint();
  if (stored) keep_choices(proposed, stored->model);
  if (data.initial) {
    proposed.model.hidden = data.initial->hidden();
    proposed.model.hidden_units = data.initial->hidden_units();
    proposed.model.initial_fingerprint = data.initial->fingerprint();
  }
  auto model = effective_model(config, proposed.model);
  if (!model) return model.error();
  if (auto fits = check_memory(config, *model); !fits) return fits.error();
  if (data.initial) {
    if (auto fits = data.initial->check_fits(*model); !fits) return fits.error();
    if (on_note) on_note(initial_model_note(config, data, *model));
  }
  if (auto sized = size_wide_rows(*model, stored, data); !sized) return sized.error();
  data.model = *model;
  data.recipe = recipe_chosen(config, proposed.choices, *model);
  data.evaluation_sample = sample_in_effect(config, data, stored);
  return data;
}

namespace {

std::uint32_t rows_per_chunk(const ModelConfig& model) {
  const ShardMap map(model);
  const std::size_t row_bytes =
      (map.row_width(ShardId{0}) + 1 + map.codes_per_row(ShardId{0})) * sizeof(float);
  return static_cast<std::uint32_t>(rows_per_message(row_bytes));
}

}  // namespace

std::string wide_weights_text(const WideWeights& weights) {
  return fmt::format("{} {}", weights.mean, weights.beyond);
}

std::optional<WideWeights> stored_wide_weights(const std::map<std::string, std::string>& settings) {
  const auto text = settings.find(kWideWeightsKey);
  if (text == settings.end()) return std::nullopt;
  WideWeights weights;
  const char* const end = text->second.data() + text->second.size();
  const auto mean = std::from_chars(text->second.data(), end, weights.mean);
  if (mean.ec != std::errc() || mean.ptr == end || *mean.ptr != ' ') return std::nullopt;
  const auto beyond = std::from_chars(mean.ptr + 1, end, weights.beyond);
  if (beyond.ec != std::errc() || beyond.ptr != end) return std::nullopt;
  return weights;
}

std::string run_title(const MasterConfig& config) {
  return std::filesystem::path(config.run.store).lexically_normal().filename().string();
}

Patience patience_of(const MasterConfig& config) {
  if (config.evaluation.patience) return {*config.evaluation.patience, 0};
  const bool is_chosen =
      config.recipe == RecipeKind::kAuto && !config.model.get(&ModelConfig::epochs);
  return is_chosen ? kPatienceAuto : Patience();
}

CoreConfig core_config(const MasterConfig& config, const RunData& data) {
  CoreConfig core;
  static_cast<CoreSettings&>(core) = config.core;
  core.audit_secret = random_bits();
  core.kernels = own_digests();
  // Local volunteers die with the master: there is nobody to wait for.
  if (config.network.listen.empty()) core.rejoin_grace = Millis(0);
  if (is_wide(data.model)) {
    core.shard_bytes = WideTrainer::shard_bytes(data.model, data.wide_weights);
    core.holder_bytes = WideTrainer::holder_bytes(data.model, data.wide_weights);
  } else {
    core.shard_bytes = ShardTrainer::shard_bytes(data.model);
  }
  core.lends_input = !is_wide(data.model) && config.run.input_layer == InputHolder::kVolunteers;
  core.input_shard_bytes = InputTrainer::shard_bytes(data.model);
  core.test_fingerprint = data.test ? data.test->fingerprint() : 0;
  core.rows_per_chunk = rows_per_chunk(data.model);
  core.test_points = data.test ? data.test->points() : 0;
  core.evaluate_sample = config.evaluation.sample.value_or(kEvaluateAll);
  core.patience = patience_of(config);
  core.run = run_title(config);
  core.top_k = kEvaluationTopK;
  core.label_counts = data.label_counts;
  return core;
}

}  // namespace gleaner
