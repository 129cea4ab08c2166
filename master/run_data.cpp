#include "master/run_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/data/name_table.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/limits.hpp"
#include "common/machine_facts.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/recipe.hpp"
#include "master/evaluation_sample.hpp"
#include "master/recipe/measured_recipe.hpp"
#include "master/recipe/recipe_chosen.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

// The identity of the run in the store, if it can be read. Opening the store reports errors.
std::optional<RunIdentity> stored_identity(const std::string& folder) {
  auto store = open_rocks_store(folder, OpenMode::kReadOnly);
  if (!store) return std::nullopt;
  const auto run = RunStore::open(std::move(*store));
  if (!run) return std::nullopt;
  return (*run)->identity();
}

// A run keeps its recipe's choices, so that another number of epochs or another version of the
// recipe does not make it another run.
void keep_choices(Recipe& recipe, const ModelConfig& stored) {
  if (stored.data_fingerprint != recipe.model.data_fingerprint) return;
  for_each_model_key([&](const auto& field) {
    for (const RecipeChoice& choice : recipe.choices) {
      if (choice.field == field.name) recipe.model.*field.member = stored.*field.member;
    }
  });
}

bool is_named_as_texts(const std::string& path) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson"},
      [&](const char* ending) { return path.find(ending) != std::string::npos; });
}

// Names beside the data set; none where they belong to another one.
Result<NameTable> names_beside(const std::string& data, const char* file, std::uint32_t count) {
  const std::string path = companion_path(data, file);
  if (path.empty()) return NameTable();
  auto names = NameTable::load(path);
  if (!names || names->size() == count) return names;
  return NameTable();
}

class RunDataOpener {
 public:
  RunDataOpener(const MasterConfig& config, const std::function<void(const std::string&)>& on_note)
      : config_(config), on_note_(on_note) {}

  Result<RunData> open();

 private:
  Result<void> open_training_set(const PackOptions& options);
  Result<void> open_test_set(PackOptions options);
  // The width that the operator, the stored run or the initial model fixes; unset if the recipe
  // chooses it.
  [[nodiscard]] std::optional<std::uint32_t> hidden_in_effect() const;
  // Sizes in a header cost nothing to write: refuses those that this machine cannot hold, before
  // memory is taken.
  [[nodiscard]] Result<void> check_memory(const ModelConfig& model) const;
  // Replaces the configuration of a new run by a better one, if one is found among those that
  // nobody has ruled out.
  Result<void> measure(ModelConfig& model, Recipe& proposed);
  // Sets the model's wide_rows, which a run keeps, and the data's wide_weights.
  Result<void> size_wide_rows(ModelConfig& model);
  // A run keeps the sample with which it began, even if it gets more epochs.
  [[nodiscard]] std::optional<std::uint64_t> sample_in_effect() const;
  // Notes signs that the training file may be the wrong one.
  void note_oddities() const;
  // Matches the labels and features of the initial model and of the training file.
  Result<void> match_names();
  [[nodiscard]] std::string initial_model_note(const ModelConfig& model) const;

  const MasterConfig& config_;
  const std::function<void(const std::string&)>& on_note_;
  std::optional<RunIdentity> stored_;  // which run the store holds
  RunData data_;
};

}  // namespace

Result<RunData> RunDataOpener::open() {
  PackOptions options;
  options.normalize = config_.data.l2_normalise;
  options.cache_dir = config_.data.cache_dir;
  options.on_note = on_note_;
  if (auto opened = open_training_set(options); !opened) return opened.error();
  if (auto opened = open_test_set(options); !opened) return opened.error();
  data_.label_counts = count_labels(*data_.train);
  note_oddities();
  if (!config_.data.init_from.empty()) {
    auto initial = InitialModel::open(config_.data.init_from);
    if (!initial) return initial.error();
    data_.initial = std::move(*initial);
    if (auto matched = match_names(); !matched) return matched.error();
  }
  stored_ = stored_identity(config_.run.store);
  Recipe proposed = recipe(facts_of(*data_.train), recipe_request(config_, hidden_in_effect()));
  proposed.model.data_fingerprint = data_.train->fingerprint();
  if (stored_) keep_choices(proposed, stored_->model);
  if (data_.initial) {
    proposed.model.hidden = data_.initial->hidden();
    proposed.model.hidden_units = data_.initial->hidden_units();
    proposed.model.initial_fingerprint = data_.initial->fingerprint();
  }
  auto model = effective_model(config_, proposed.model);
  if (!model) return model.error();
  if (auto fits = check_memory(*model); !fits) return fits.error();
  if (data_.initial) {
    if (auto fits = data_.initial->check_fits(*model); !fits) return fits.error();
    if (on_note_) on_note_(initial_model_note(*model));
  }
  if (auto measured = measure(*model, proposed); !measured) return measured.error();
  if (auto sized = size_wide_rows(*model); !sized) return sized.error();
  data_.model = *model;
  data_.recipe = recipe_chosen(config_, proposed.choices, *model);
  data_.evaluation_sample = sample_in_effect();
  return std::move(data_);
}

Result<void> RunDataOpener::open_training_set(const PackOptions& options) {
  auto train = open_or_pack(config_.data.train, options);
  if (!train && is_named_as_texts(config_.data.train)) {
    return Error{train.error().code,
                 fmt::format("{}; if it is a table of texts, 'gleaner dataset convert {} --text "
                             "COLUMN --tags COLUMN --output FOLDER' makes FOLDER/train.txt of it",
                             train.error().message, config_.data.train)};
  }
  if (!train) return train.error();
  data_.train = std::move(*train);
  // Finds damage here, as an error, instead of in the middle of training.
  if (auto intact = data_.train->verify_all(); !intact) return intact.error();
  const PackedSummary summary = data_.train->summary();
  if (summary.label_entries > 0 && summary.feature_entries > 0) return {};
  const char* const missing = summary.label_entries == 0 ? "label" : "feature";
  return Error{ErrorCode::kInvalidData,
               fmt::format("{}: there is nothing to train on: none of its {} examples has a {}; "
                           "'gleaner dataset info {}' shows what was read",
                           config_.data.train, data_.train->points(), missing, config_.data.train)};
}

Result<void> RunDataOpener::open_test_set(PackOptions options) {
  if (config_.data.test.empty()) return {};
  options.text.limits = Dimensions{data_.train->features(), data_.train->labels()};
  options.text.limits_name = config_.data.train;
  options.text.limits_remedy = fmt::format(
      "; gleaner dataset convert {} --like {} --output FILE makes a training file with "
      "room for them",
      config_.data.train, config_.data.test);
  auto test = open_or_pack(config_.data.test, options);
  if (!test) return test.error();
  if ((*test)->features() > data_.train->features() || (*test)->labels() > data_.train->labels()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{} has {} features and {} labels, more than the {} and {} of {}{}",
                             config_.data.test, (*test)->features(), (*test)->labels(),
                             data_.train->features(), data_.train->labels(), config_.data.train,
                             options.text.limits_remedy)};
  }
  if ((*test)->points() > 0) data_.test = std::move(*test);
  return {};
}

std::optional<std::uint32_t> RunDataOpener::hidden_in_effect() const {
  if (const auto set = config_.model.get(&ModelConfig::hidden)) return set;
  if (data_.initial) return data_.initial->hidden();
  if (stored_) return stored_->model.hidden;
  return std::nullopt;
}

Result<void> RunDataOpener::check_memory(const ModelConfig& model) const {
  const std::uint64_t has = machine_facts().memory_bytes;
  if (is_wide(model)) {
    // At least three numbers per feature, and a stored row per label with its features.
    const std::uint64_t least = std::uint64_t{model.features} * 3 * sizeof(double) +
                                std::uint64_t{model.labels} * kWideWeights * 2 * sizeof(float);
    if (least <= has) return {};
    return Error{
        ErrorCode::kResources,
        fmt::format("{}: rows of {} labels over {} features take {} GiB at least, and this "
                    "machine has {} GiB: check the sizes in the file's first line",
                    config_.data.train, model.labels, model.features, least >> 30, has >> 30)};
  }
  if (config_.run.input_layer != InputHolder::kMaster) return {};
  const std::uint64_t needed = std::uint64_t{model.features} * model.hidden * sizeof(float);
  if (needed <= has) return {};
  return Error{
      ErrorCode::kResources,
      fmt::format("{}: an input layer of {} features x {} hidden units takes {} GiB, and "
                  "this machine has {} GiB: check the sizes in the file's first line, "
                  "lower --hidden, or let volunteers hold it (--input-layer volunteers)",
                  config_.data.train, model.features, model.hidden, needed >> 30, has >> 30)};
}

Result<void> RunDataOpener::measure(ModelConfig& model, Recipe& proposed) {
  if (stored_ || data_.initial || config_.recipe == RecipeKind::kFast) return {};
  RecipeSearch search;
  search.usual = model;
  search.has_free_scale = !config_.model.has("wide_scale");
  search.has_free_rate = !config_.model.has("output_rate");
  search.epochs_max = config_.model.get(&ModelConfig::epochs);
  Recipe other;
  if (!hidden_in_effect()) {
    other = recipe(facts_of(*data_.train), recipe_request(config_, is_wide(model) ? 1 : 0));
    other.model.data_fingerprint = model.data_fingerprint;
    auto in_effect = effective_model(config_, other.model);
    if (in_effect && check_memory(*in_effect)) search.other = *in_effect;
  }
  const bool is_free = is_wide(model) && (search.has_free_scale || search.has_free_rate);
  if (!is_free && !search.other) return {};
  auto measured =
      measured_recipe(*data_.train, search, effective_threads(config_, machine_facts().cores),
                      without_slash(config_.run.store) + ".trial", on_note_);
  if (!measured) return measured.error();
  if (!*measured) return {};
  const bool is_other = is_wide((*measured)->model) != is_wide(model);
  if (is_other) proposed = std::move(other);
  model = (*measured)->model;
  data_.trials = std::move((*measured)->trials);
  const char* const decided = is_other || !is_wide(model) ? "hidden" : "wide_scale";
  for (RecipeChoice& choice : proposed.choices) {
    if (choice.field == decided) choice.why = (*measured)->why;
  }
  return {};
}

Result<void> RunDataOpener::size_wide_rows(ModelConfig& model) {
  if (!is_wide(model)) return {};
  const auto differ = [&] {
    ModelConfig same = stored_->model;
    same.epochs = model.epochs;
    same.wide_rows = 0;
    return !model_differences(model, same).empty();
  };
  const bool goes_on = stored_ && !differ();
  if (goes_on) {
    model.wide_rows = stored_->model.wide_rows;
    if (const auto weights = stored_wide_weights(stored_->settings)) {
      data_.wide_weights = *weights;
      return {};
    }
  }
  auto start = WideStart::open(model, *data_.train, data_.initial.get());
  if (!start) return start.error();
  const auto sizes = (*start)->sizes();
  if (!sizes) return sizes.error();
  data_.wide_weights = sizes->weights;
  if (goes_on) return {};
  data_.wide_start = std::move(*start);
  model.wide_rows = sizes->rows;
  if (model.wide_rows <= kWideRowsMax) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("a shard would have more than {} rows of {} weights: choose more "
                           "--output-shards or fewer --wide-features",
                           kWideRowsMax, kWideWeights)};
}

std::optional<std::uint64_t> RunDataOpener::sample_in_effect() const {
  if (config_.evaluation.sample) return config_.evaluation.sample;
  if (stored_) {
    if (const auto kept = stored_evaluation_sample(stored_->settings)) return kept;
  }
  if (!data_.test) return std::nullopt;
  const std::uint64_t sample =
      evaluation_sample(data_.model, data_.train->summary().label_entries,
                        config_.core.evaluate_every_epochs, data_.test->points());
  return sample == data_.test->points() ? kEvaluateAll : sample;
}

void RunDataOpener::note_oddities() const {
  if (!on_note_) return;
  const auto& counts = data_.label_counts;
  const auto most = std::ranges::max_element(counts);
  if (const auto unseen = std::ranges::count(counts, 0U); unseen > 0) {
    on_note_(fmt::format("{}: {} of {} labels never occur; they cannot be learned here",
                         config_.data.train, unseen, counts.size()));
  }
  if (2 * std::uint64_t{*most} > data_.train->points()) {
    const auto label = static_cast<std::uint32_t>(most - counts.begin());
    const auto names = names_beside(config_.data.train, kLabelNamesFile, data_.train->labels());
    const std::string known(names ? names->name(label) : "");
    on_note_(fmt::format(
        "{}: {} is on {} of {} examples; naming it always gives that precision at 1",
        config_.data.train, known.empty() ? fmt::format("label {}", label) : "'" + known + "'",
        *most, data_.train->points()));
  }
}

Result<void> RunDataOpener::match_names() {
  const std::string& train = config_.data.train;
  const auto labels = names_beside(train, kLabelNamesFile, data_.train->labels());
  if (!labels) return labels.error();
  const auto features = names_beside(train, kFeatureNamesFile, data_.train->features());
  if (!features) return features.error();
  return data_.initial->match(*labels, data_.train->labels(), *features, data_.train->features());
}

std::string RunDataOpener::initial_model_note(const ModelConfig& model) const {
  const auto part = [](const char* things, const NameMatch& match, std::uint32_t in_file,
                       std::uint32_t in_data) {
    return fmt::format(
        "{} of its {} {} are in the training file, matched by {}; {} {} of the "
        "training file begin as in any run",
        match.shared(), in_file, things,
        match.is_by_name() ? "name" : "number, since one side has no names",
        in_data - match.shared(), things);
  };
  const InitialModel& initial = *data_.initial;
  return fmt::format(
      "{} ({}): {}; {}", config_.data.init_from,
      is_wide(model) ? std::string("no hidden layer")
                     : fmt::format("{} hidden units", initial.hidden()),
      part("labels", initial.matched_labels(), initial.labels(), model.labels),
      part("features", initial.matched_features(), initial.features(), model.features));
}

Result<RunData> open_run_data(const MasterConfig& config,
                              const std::function<void(const std::string&)>& on_note) {
  return RunDataOpener(config, on_note).open();
}

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

}  // namespace gleaner
