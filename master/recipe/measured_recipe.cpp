#include "master/recipe/measured_recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/thread_pool.hpp"
#include "master/recipe/recipe_trials.hpp"

namespace gleaner {
namespace {

// The cost of a whole search, in epochs of the run over as many examples. It trains about 26
// epochs, but an example costs less among the few labels of a sample.
constexpr std::uint64_t kSearchEpochs = 12;
constexpr float kScaleMin = 0.5F;
constexpr float kScaleMax = 256.0F;
constexpr float kCoarseStep = 2.0F;
constexpr float kFineStep = 1.4142135F;
constexpr float kSlowerRate = 0.5F;

double mean(const Quality& quality) {
  return std::accumulate(quality.begin(), quality.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, quality.size()));
}

// The standard error of the mean difference on the same examples.
double paired_error(const Quality& a, const Quality& b) {
  const auto count = static_cast<double>(a.size());
  const double difference = mean(a) - mean(b);
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += (a[i] - b[i] - difference) * (a[i] - b[i] - difference);
  }
  return std::sqrt(squares / std::max(1.0, count - 1) / std::max(1.0, count));
}

std::string described(const ModelConfig& model) {
  return is_wide(model) ? fmt::format("no hidden layer, start rows of length {:.3g}, rate {:.3g}",
                                      model.wide_scale, model.output_rate)
                        : fmt::format("{} hidden units", model.hidden);
}

// A candidate and what it answered.
struct Tried {
  ModelConfig model;
  Quality quality;
};

class Search {
 public:
  Search(RecipeTrials& trials, const RecipeSearch& search, std::vector<RecipeTrial>& record)
      : trials_(trials), search_(search), record_(record) {}

  // Tries the candidate for `epochs` epochs, or as long as a run.
  Result<void> try_one(const ModelConfig& model, std::optional<std::uint32_t> epochs = {}) {
    if (std::ranges::find(tried_, model, &Tried::model) != tried_.end()) return {};
    const auto most = search_.epochs_max;
    auto quality = trials_.train(model, epochs && most ? std::min(*epochs, *most)
                                        : epochs       ? epochs
                                                       : most);
    if (!quality) return quality.error();
    record_.push_back(
        {model.hidden, model.wide_scale, model.output_rate, epochs.value_or(0), mean(*quality)});
    tried_.push_back({model, std::move(*quality)});
    return {};
  }

  // The length with the best quality among that of `model`, its neighbours by `step`, and so on
  // from the best while `goes_on`.
  Result<ModelConfig> best_scale(ModelConfig model, float step, std::optional<std::uint32_t> epochs,
                                 bool goes_on) {
    tried_.clear();
    if (auto tried = try_one(model, epochs); !tried) return tried.error();
    for (float centre = 0; centre != best().model.wide_scale;) {
      centre = best().model.wide_scale;
      for (const float scale : {centre / step, centre * step}) {
        if (scale < kScaleMin || scale > kScaleMax) continue;
        model.wide_scale = scale;
        if (auto tried = try_one(model, epochs); !tried) return tried.error();
      }
      if (!goes_on) break;
    }
    return best().model;
  }

  [[nodiscard]] const Tried& best() const {
    return *std::ranges::max_element(tried_, {}, [](const Tried& t) { return mean(t.quality); });
  }

  [[nodiscard]] const Tried& of(const ModelConfig& model) const {
    return *std::ranges::find(tried_, model, &Tried::model);
  }

 private:
  RecipeTrials& trials_;
  const RecipeSearch& search_;
  std::vector<RecipeTrial>& record_;
  std::vector<Tried> tried_;  // for the same number of epochs, or as long as a run
};

// Tries the variants of a configuration without a hidden layer. The best are left as tried.
Result<void> search_wide(Search& search, ModelConfig model, const RecipeSearch& wanted) {
  if (wanted.has_free_scale) {
    const auto coarse = search.best_scale(model, kCoarseStep, 1, true);
    if (!coarse) return coarse.error();
    const auto fine = search.best_scale(*coarse, kFineStep, {}, false);
    if (!fine) return fine.error();
    model = *fine;
  }
  if (wanted.has_free_rate) {
    model.output_rate *= kSlowerRate;
    return search.try_one(model);
  }
  return {};
}

}  // namespace

std::uint64_t trial_sample(const ModelConfig& model) {
  return std::max(kTrialPointsMin, model.points * model.epochs * 3 / 20 / kSearchEpochs);
}

Result<std::optional<MeasuredRecipe>> measured_recipe(
    const PackedDataset& train, const RecipeSearch& search, std::uint32_t threads,
    const std::string& scratch, const std::function<void(const std::string&)>& on_note) {
  const ModelConfig& usual = search.usual;
  const auto parts = trial_data(train, trial_sample(usual), usual.seed, scratch);
  if (!parts) return parts.error();
  if (parts->empty()) return std::optional<MeasuredRecipe>();
  if (on_note) {
    on_note(fmt::format("choosing the configuration: candidates are trained on {} of {} examples",
                        parts->front().train->points(), train.points()));
  }
  ThreadPool pool(threads);
  RecipeTrials trials(*parts, pool);
  MeasuredRecipe measured;
  Search tried(trials, search, measured.trials);
  const ModelConfig* const wide = is_wide(usual) ? &usual : search.other ? &*search.other : nullptr;
  if (wide != nullptr) {
    if (auto done = search_wide(tried, *wide, search); !done) return done.error();
  }
  if (auto done = tried.try_one(usual); !done) return done.error();
  if (search.other && !is_wide(*search.other)) {
    if (auto done = tried.try_one(*search.other); !done) return done.error();
  }
  const Quality& before = tried.of(usual).quality;
  const Tried& best = tried.best();
  const bool is_better = mean(best.quality) - mean(before) > paired_error(best.quality, before);
  measured.model = is_better ? best.model : usual;
  measured.why = fmt::format(
      "measured on {} held-out examples: quality {:.3f}, {}", before.size(),
      mean(is_better ? best.quality : before),
      is_better
          ? fmt::format("and {:.3f} with {}", mean(before), described(usual))
          : fmt::format("and none of {} others is clearly better", measured.trials.size() - 1));
  if (on_note) {
    on_note(fmt::format("choosing the configuration: of {} tried, {} is the best: {}",
                        measured.trials.size(), described(measured.model), measured.why));
  }
  return std::optional(std::move(measured));
}

}  // namespace gleaner
