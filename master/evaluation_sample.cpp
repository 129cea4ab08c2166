#include <algorithm>

#include "master/run_data.hpp"

namespace gleaner {
namespace {

constexpr double kFractionOfTraining = 0.1;
// With fewer examples P@1 would be uncertain by more than three percent either way.
constexpr std::uint64_t kExamplesMin = 1000;
// Training passes over an active neuron's row three times: for the score, for the hidden layer's
// gradient and for the update.
constexpr double kTrainingPasses = 3;
// A multiplication of exact scoring costs a fourth of a multiplication of training. Scoring goes
// through the rows in order and uses a cached block of them for many examples; training fetches
// scattered rows. (machine_bench: an example's visit to a row costs 42 ns in three passes, a score
// 3.4 ns.)
constexpr double kScoringDiscount = 4;
// Without a hidden layer, scoring an example against this number of labels costs as much as
// training it, since the scores of all labels are compared (tests/bench/RESULTS.md, wide-scoring).
constexpr double kLabelsScoredInAStep = 30'000;
constexpr double kScoringLeast = 0.1;  // training steps

// Output neurons that an example trains besides its true labels. The tables' choices are known only
// later; they are assumed to fill the active set.
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
  const auto at_least = [test_examples](double affordable) {
    if (affordable >= static_cast<double>(test_examples)) return test_examples;
    return std::min(test_examples, std::max(kExamplesMin, static_cast<std::uint64_t>(affordable)));
  };
  const std::uint32_t epochs =
      every_epochs == 0 ? model.epochs
                        : std::min(model.epochs, std::max(every_epochs, epochs_per_round(model)));
  if (is_wide(model)) {
    const double scoring = std::max(kScoringLeast, model.labels / kLabelsScoredInAStep);
    return at_least(kFractionOfTraining * epochs * static_cast<double>(model.points) / scoring);
  }
  // The hidden layer's width is a factor of both kinds of work, and is left out.
  const double neurons_trained = epochs * (static_cast<double>(model.points) * negatives(model) +
                                           static_cast<double>(label_entries));
  const double training = neurons_trained * kTrainingPasses;
  const double scoring_an_example = model.labels / kScoringDiscount;
  return at_least(kFractionOfTraining * training / scoring_an_example);
}

}  // namespace gleaner
