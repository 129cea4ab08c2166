#include "master/evaluation_sample.hpp"

#include <algorithm>

#include "common/model/run_plan.hpp"

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

}  // namespace gleaner
