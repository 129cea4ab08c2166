#include "master/recipe/measured_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "common/thread_pool.hpp"
#include "master/recipe/wide_trial.hpp"

namespace gleaner {
namespace {

// Epochs of one whole search, for trial_sample().
constexpr std::uint64_t kSearchEpochs = 16;
constexpr float kScaleMin = 0.5F;
constexpr float kScaleMax = 256.0F;
constexpr float kCoarseStep = 2.0F;
constexpr float kFineStep = 1.4142135F;

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

// Tries one length after another and keeps what each one answered.
class Search {
 public:
  Search(WideTrials& trials, MeasuredScale& measured) : trials_(trials), measured_(measured) {}

  // The length with the best mean among `first`, its neighbours by `step`, and so on from the best
  // while `goes_on`.
  Result<float> best_of(float first, float step, std::uint32_t epochs, bool goes_on) {
    known_.clear();
    epochs_ = epochs;
    if (auto tried = try_scale(first); !tried) return tried.error();
    for (float centre = 0; centre != best();) {
      centre = best();
      for (const float scale : {centre / step, centre * step}) {
        if (auto tried = try_scale(scale); !tried) return tried.error();
      }
      if (!goes_on) break;
    }
    return best();
  }

  Result<void> try_scale(float scale) {
    if (scale < kScaleMin || scale > kScaleMax || known_.contains(scale)) return {};
    auto quality = trials_.try_scale(scale, epochs_);
    if (!quality) return quality.error();
    measured_.trials.push_back({scale, epochs_, mean(*quality)});
    known_.emplace(scale, std::move(*quality));
    return {};
  }

  [[nodiscard]] float best() const {
    return std::ranges::max_element(known_, {},
                                    [](const auto& tried) { return mean(tried.second); })
        ->first;
  }

  [[nodiscard]] const Quality& of(float scale) const { return known_.at(scale); }

 private:
  WideTrials& trials_;
  MeasuredScale& measured_;
  std::uint32_t epochs_ = 0;
  std::map<float, Quality> known_;  // with `epochs_`
};

}  // namespace

std::uint64_t trial_sample(const ModelConfig& model) {
  return std::max(kTrialPointsMin, model.points * model.epochs * 3 / 20 / kSearchEpochs);
}

Result<std::optional<MeasuredScale>> measured_scale(
    const PackedDataset& train, const ModelConfig& model, std::uint32_t threads,
    const std::string& scratch, const std::function<void(const std::string&)>& on_note) {
  const auto parts = trial_data(train, trial_sample(model), model.seed, scratch);
  if (!parts) return parts.error();
  if (parts->empty()) return std::optional<MeasuredScale>();
  ThreadPool pool(threads);
  const auto trials = WideTrials::open(model, *parts, pool);
  if (!trials) return trials.error();
  const auto note = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    if (on_note)
      on_note("choosing the length of start rows: " +
              fmt::format(format, std::forward<Args>(args)...));
  };
  note("candidates are trained on {} of {} examples", parts->front().train->points(),
       train.points());
  MeasuredScale measured;
  Search search(**trials, measured);
  const float usual = model.wide_scale;
  const auto coarse = search.best_of(usual, kCoarseStep, 1, true);
  if (!coarse) return coarse.error();
  note(
      "of {} tried the best for one epoch is {:.3g}, with a quality of {:.3f} on {} held-out "
      "examples; now its neighbours for {} epochs",
      measured.trials.size(), *coarse, mean(search.of(*coarse)), search.of(*coarse).size(),
      kTrialEpochsMax);
  const auto fine = search.best_of(*coarse, kFineStep, kTrialEpochsMax, false);
  if (!fine) return fine.error();
  if (auto tried = search.try_scale(usual); !tried) return tried.error();
  const double gain = mean(search.of(*fine)) - mean(search.of(usual));
  const bool is_better = gain > paired_error(search.of(*fine), search.of(usual));
  measured.scale = is_better ? *fine : usual;
  measured.why = fmt::format(
      "measured on {} held-out examples: quality {:.3f}, {}", search.of(usual).size(),
      mean(search.of(measured.scale)),
      is_better ? fmt::format("and {:.3f} at the usual {:.3g}", mean(search.of(usual)), usual)
                : "and no other length is clearly better");
  return std::optional(std::move(measured));
}

}  // namespace gleaner
