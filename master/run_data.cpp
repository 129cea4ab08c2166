#include "master/run_data.hpp"

#include <fmt/format.h>

#include "common/dataset/open_or_pack.hpp"
#include "common/recipe.hpp"
#include "master/recipe_chosen.hpp"

namespace gleaner {
namespace {

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

}  // namespace

Result<RunData> open_run_data(const MasterConfig& config,
                              const std::function<void(const std::string&)>& on_note) {
  RunData data;
  PackOptions options;
  options.normalize = config.data.l2_normalise;
  options.cache_dir = config.data.cache_dir;
  options.on_note = on_note;
  auto train = open_or_pack(config.data.train, options);
  if (!train) return train.error();
  data.train = std::move(*train);
  // Damage is found here, as an error, and not in the middle of training.
  if (auto intact = data.train->verify_all(); !intact) return intact.error();
  if (data.train->points() == 0 || data.train->labels() == 0 || data.train->features() == 0) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: there is nothing to train on ({} points, {} features, {} labels)",
                             config.data.train, data.train->points(), data.train->features(),
                             data.train->labels())};
  }
  if (!config.data.test.empty()) {
    options.text.limits = Dimensions{data.train->features(), data.train->labels()};
    auto test = open_or_pack(config.data.test, options);
    if (!test) return test.error();
    if ((*test)->features() > data.train->features() || (*test)->labels() > data.train->labels()) {
      return Error{ErrorCode::kInvalidData,
                   fmt::format("{} has {} features and {} labels, more than the {} and {} of {}",
                               config.data.test, (*test)->features(), (*test)->labels(),
                               data.train->features(), data.train->labels(), config.data.train)};
    }
    if ((*test)->points() > 0) data.test = std::move(*test);
  }
  data.label_counts = count_labels(*data.train);
  Recipe proposed = recipe(facts_of(*data.train), {config.recipe, config.model.staleness,
                                                   config.model.loss.value_or(Loss::kLogistic)});
  proposed.model.data_fingerprint = data.train->fingerprint();
  if (!config.data.init_from.empty()) {
    auto initial = InitialModel::open(config.data.init_from);
    if (!initial) return initial.error();
    data.initial = std::move(*initial);
    proposed.model.hidden = data.initial->hidden();
    proposed.model.initial_fingerprint = data.initial->fingerprint();
  }
  auto model = effective_model(config, proposed.model);
  if (!model) return model.error();
  if (data.initial) {
    if (auto fits = data.initial->check_fits(*model); !fits) return fits.error();
    if (on_note)
      on_note(fmt::format(
          "{}: the run begins with its {} features, {} hidden units and {} labels; {} features and "
          "{} labels of the training file are not among them and begin as in any run",
          config.data.init_from, data.initial->features(), data.initial->hidden(),
          data.initial->labels(), model->features - data.initial->features(),
          model->labels - data.initial->labels()));
  }
  data.model = *model;
  data.recipe = recipe_chosen(config, proposed.choices, *model);
  return data;
}

}  // namespace gleaner
