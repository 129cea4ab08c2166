#include "common/model/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

namespace gleaner {
namespace {

// Up to this number of labels, training all neurons is as cheap as choosing some.
constexpr std::uint32_t kLabelsTrainedWhole = 2'000;
constexpr std::uint32_t kNarrowLabels = 10'000;
// With fewer training examples per label than this, labels are rare: see choose_units().
constexpr double kRareExamplesPerLabel = 20;
// Most output weights of recipe best: 0.8 GB.
constexpr std::uint64_t kOutputWeightsBest = 200'000'000;
// A volunteer holds at least one shard. More shards cost time: an example has fewer neurons to
// train in each, and every shard rounds the gradients of all (RECIPES.md, "Shards").
constexpr std::uint32_t kShards = 64;
constexpr std::uint32_t kShardsNarrow = 16;
// Active neurons besides the true labels: fewer cost precision, more cost time. In a narrow layer,
// a larger fraction of the neurons competes for each example.
constexpr std::uint32_t kActiveNarrow = 1'500;
constexpr std::uint32_t kActiveWide = 1'000;
constexpr std::uint32_t kLabelsPerActive = 200;  // in very wide layers
constexpr std::uint32_t kNeuronsPerBucket = 200;
// One in N negatives is random; in recipe best of a wide layer one in two.
constexpr std::uint32_t kPerRandom = 10;
constexpr std::uint32_t kPerRandomBest = 2;
// Small data sets need a number of updates, not of epochs.
constexpr std::uint64_t kUpdatesPerEpoch = 160;
constexpr std::uint64_t kUpdatesMin = 1'200;
constexpr std::uint64_t kUpdatesOfUnits = 600;
constexpr std::uint32_t kEpochsMax = 200;
constexpr std::uint32_t kBatchExamplesMin = 32;
constexpr std::uint32_t kBatchExamples = 128;
constexpr std::uint32_t kBatchExamplesRare = 256;
// Rates of the last epoch, as a fraction of the rates of the first.
constexpr double kFinalRate = 0.3;
// The rates rise over these batches. Without that, the first steps of rows that have seen one
// example decide too much (1.3 points of P@1 on eurlex-4.3k).
constexpr std::uint32_t kWarmupBatches = 160;
constexpr std::int32_t kGradientStepLog2 = -8;
constexpr std::uint32_t kActivationBits = 5;
// The lag grows by one every 40 batches.
constexpr std::uint32_t kStalenessRise = 40;
constexpr float kDivergenceFactor = 2.0F;
constexpr std::uint64_t kRoundBatchesMin = 64;
// A round visits each row about this number of times, so that storing touched rows (about 5 us of
// processor per row) is cheap compared with training them (about 0.1 us per visit).
constexpr std::uint64_t kVisitsPerRound = 350;
// Rounds are longer than this only to lower the commits' fraction with few volunteers.
constexpr std::uint64_t kRoundExamplesUsual = 500'000;
// Bytes of a committed row per byte of a unit's example: about 0.4 H + 14 to 2 H
// (tools/plan/PLAN.md).
constexpr double kRowPerExample = 0.25;
constexpr std::uint32_t kVolunteersFew = 2;
// A run has at least this number of rounds, since each checkpoint can be evaluated, or fewer if
// commits would otherwise exceed their fraction.
constexpr std::uint32_t kRoundsUsual = 4;
constexpr std::uint32_t kRoundsFew = 2;

// With fewer features, or if an example has more than one in kFeaturesPerFeature of them,
// combinations of features matter. A hidden layer learns combinations; a wide row does not.
constexpr std::uint32_t kFewFeatures = 1'000;
constexpr std::uint32_t kFeaturesPerFeature = 20;
// For wide rows (RECIPES.md, "Wide rows").
constexpr std::uint32_t kLabelsTrainedWholeWide = 200;
constexpr std::uint32_t kListsPerEpoch = 8;
constexpr std::uint32_t kListBatchesMax = 100;
constexpr float kWideRate = 1.5F;
constexpr double kWideScale = 12;
constexpr std::uint64_t kWideRoundExamples = 500'000;

// Sets one field after another, each with its reason.
class Chooser {
 public:
  Chooser(const DatasetFacts& facts, const RecipeRequest& request)
      : facts_(facts), request_(request), kind_(request.kind) {
    model_.points = facts.points;
    model_.features = facts.features;
    model_.labels = facts.labels;
    model_.staleness = request.staleness.value_or(1);
  }

  Recipe choose() {
    if (has_wide_rows()) {
      choose_wide_rows();
      choose_shards();
      choose_wide_schedule();
      choose_wide_sampling();
      return {model_, std::move(choices_)};
    }
    choose_units();
    choose_shards();
    choose_schedule();
    choose_sampling();
    choose_rounds();
    choose_rates();
    return {model_, std::move(choices_)};
  }

 private:
  template <typename T>
  void set(const char* field, T ModelConfig::*member, T value, std::string why) {
    model_.*member = value;
    choices_.push_back({field, std::move(why)});
  }

  template <typename T>
  T by_kind(T fast, T usual, T best) const {
    return kind_ == RecipeKind::kFast ? fast : kind_ == RecipeKind::kBest ? best : usual;
  }

  [[nodiscard]] bool is_best() const { return kind_ == RecipeKind::kBest; }

  [[nodiscard]] bool is_narrow() const { return facts_.labels <= kNarrowLabels; }

  [[nodiscard]] bool is_trained_whole() const { return facts_.labels <= kLabelsTrainedWhole; }

  [[nodiscard]] double examples_per_label() const {
    return static_cast<double>(facts_.points) * std::max(1.0, facts_.labels_per_point) /
           facts_.labels;
  }

  [[nodiscard]] bool has_rare_labels() const {
    return examples_per_label() < kRareExamplesPerLabel;
  }

  [[nodiscard]] bool has_wide_rows() const {
    if (request_.hidden) return *request_.hidden == 0;
    const bool are_texts = facts_.features >= kFewFeatures &&
                           facts_.features_per_point * kFeaturesPerFeature <= facts_.features;
    return facts_.features_per_point > 0 && (are_texts || is_too_short_for_units());
  }

  // Whether a hidden layer would not learn in the requested epochs. Wide rows begin with the label
  // centroids.
  [[nodiscard]] bool is_too_short_for_units() const {
    return request_.epochs &&
           *request_.epochs * (facts_.points / kBatchExamplesMin) < kUpdatesOfUnits;
  }

  void choose_wide_rows();
  void choose_wide_schedule();
  void choose_wide_sampling();
  void choose_units();
  [[nodiscard]] std::uint32_t width() const;
  void choose_shards();
  void choose_schedule();
  // The recipe's number of epochs. Requires batch_examples.
  [[nodiscard]] std::uint32_t own_epochs() const;
  void choose_sampling();
  void choose_rounds();
  // Examples of a round in which this number of volunteers keeps the commits' fraction, if the
  // round reaches every row.
  [[nodiscard]] std::uint64_t examples_for_fraction(std::uint32_t volunteers) const;
  void choose_rates();

  const DatasetFacts& facts_;
  const RecipeRequest& request_;
  RecipeKind kind_;
  ModelConfig model_;
  std::vector<RecipeChoice> choices_;
};

std::uint32_t Chooser::width() const {
  if (!is_best()) return 128;
  const std::uint64_t fits =
      std::bit_floor(std::max<std::uint64_t>(1, kOutputWeightsBest / facts_.labels));
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fits, 128, 1024));
}

void Chooser::choose_wide_rows() {
  set("hidden", &ModelConfig::hidden, 0u,
      request_.hidden ? "asked for"
                      : "texts: a label's words identify it better than a few hidden units");
  set("wide_features", &ModelConfig::wide_features, by_kind(64u, 64u, 128u),
      "a few words tell rare labels apart; frequent labels keep more");
  // Long rows separate single labels at once, but disturb each other where examples have several
  // labels.
  set("wide_scale", &ModelConfig::wide_scale,
      static_cast<float>(kWideScale / std::cbrt(std::sqrt(std::max(1.0, facts_.labels_per_point)))),
      "shorter where examples have many labels, which share their words");
}

void Chooser::choose_wide_schedule() {
  const std::uint64_t wanted =
      std::bit_floor(std::max<std::uint64_t>(1, facts_.points / kUpdatesPerEpoch));
  const auto batch = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(wanted, kBatchExamplesMin, kBatchExamplesRare));
  set("batch_examples", &ModelConfig::batch_examples, request_.batch_examples.value_or(batch),
      "enough work between two updates; the lists serve several batches");
  set("epochs", &ModelConfig::epochs, request_.epochs.value_or(by_kind(3u, 5u, 8u)),
      "training begins with the label centroids, and a few epochs are enough");
  const std::uint64_t epoch = batches_per_epoch(model_);
  const std::uint64_t rounds =
      (epoch * model_.batch_examples + kWideRoundExamples - 1) / kWideRoundExamples;
  set("round_batches", &ModelConfig::round_batches,
      static_cast<std::uint32_t>((epoch + rounds - 1) / rounds),
      fmt::format("an epoch, or a part of it of {} examples at most", kWideRoundExamples));
  set("output_rate", &ModelConfig::output_rate, kWideRate,
      "the best of the rates that were tried, over all data sets");
  set("rate_decay", &ModelConfig::rate_decay,
      static_cast<float>(std::pow(kFinalRate, 1.0 / (by_kind(3, 5, 8) - 1))),
      "smaller steps towards the end");
  set("warmup_batches", &ModelConfig::warmup_batches,
      static_cast<std::uint32_t>(std::min<std::uint64_t>(kWarmupBatches, epoch / 2)),
      "large steps at the start would undo the label centroids");
  set("divergence_factor", &ModelConfig::divergence_factor, kDivergenceFactor,
      "no successful round rose so far above the best");
}

void Chooser::choose_wide_sampling() {
  if (facts_.labels <= kLabelsTrainedWholeWide) {
    set("sampling", &ModelConfig::sampling, Sampling::kAll,
        "with so few labels choosing among them costs as much as training them all");
    return;
  }
  set("sampling", &ModelConfig::sampling, Sampling::kLsh,
      "the features' lists have the neurons that probably answer an example");
  set("wide_list_weight", &ModelConfig::wide_list_weight, by_kind(1 / 6.0F, 1 / 8.0F, 1 / 12.0F),
      "smaller weights cost time and find little more");
  set("wide_score_min", &ModelConfig::wide_score_min, by_kind(-4.3F, -5.0F, -5.5F),
      "labels with lower scores have nothing to learn from an example");
  set("rehash_batches", &ModelConfig::rehash_batches,
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
          batches_per_epoch(model_) / kListsPerEpoch, 1, kListBatchesMax)),
      "older lists miss neurons that have become strong");
}

// Rectified activations are never negative, so all rows learn their mean direction first, and a
// label with few examples is forgotten. Linear units have no such direction. With many examples per
// label rectified units win (RECIPES.md, "Units").
void Chooser::choose_units() {
  set("hidden", &ModelConfig::hidden, width(),
      by_kind("a first look", "learns nearly as well as a wider layer",
              "as wide as improves precision and fits memory"));
  set("hidden_units", &ModelConfig::hidden_units,
      has_rare_labels() ? HiddenUnits::kLinear : HiddenUnits::kRelu,
      fmt::format("a label has {:.1f} training examples on average, {} than {:.0f}",
                  examples_per_label(), has_rare_labels() ? "fewer" : "no fewer",
                  kRareExamplesPerLabel));
  set("dropout", &ModelConfig::dropout,
      model_.hidden >= 1024  ? 0.5F
      : model_.hidden >= 256 ? 0.4F
                             : 0.0F,
      model_.hidden >= 256 ? "keeps a wide layer from memorising the examples"
                           : "a narrow layer has no units to spare");
  set("activation_bits", &ModelConfig::activation_bits, kActivationBits,
      "more change no precision, and each is a bit per unit of every example");
}

void Chooser::choose_shards() {
  const std::uint32_t shards = is_trained_whole() ? kShardsNarrow : kShards;
  set("output_shards", &ModelConfig::output_shards, std::min(shards, facts_.labels),
      "as many volunteers can take part, each with all its cores");
}

std::uint32_t Chooser::own_epochs() const {
  const std::uint64_t updates = batches_per_epoch(model_);
  const std::uint64_t least = (by_kind(1u, 1u, 2u) * kUpdatesMin + updates - 1) / updates;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(least, by_kind(3u, 5u, 10u), kEpochsMax));
}

void Chooser::choose_schedule() {
  const std::uint64_t most = has_rare_labels() ? kBatchExamplesRare : kBatchExamples;
  const std::uint64_t wanted =
      std::bit_floor(std::max<std::uint64_t>(1, facts_.points / kUpdatesPerEpoch));
  const auto batch =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(wanted, kBatchExamplesMin, most));
  set("batch_examples", &ModelConfig::batch_examples, request_.batch_examples.value_or(batch),
      fmt::format("as large as leaves {} updates per epoch, from {} to {}", kUpdatesPerEpoch,
                  kBatchExamplesMin, most));
  set("epochs", &ModelConfig::epochs, request_.epochs.value_or(own_epochs()),
      fmt::format("{} epochs, or more where they make fewer than {} updates", by_kind(3, 5, 10),
                  by_kind(1u, 1u, 2u) * kUpdatesMin));
  choices_.push_back({"staleness", "enough to overlap master and volunteers on a local network"});
  if (model_.staleness > 1) {
    set("staleness_rise", &ModelConfig::staleness_rise, kStalenessRise,
        "the first updates all point one way and overshoot when they come late");
  }
}

void Chooser::choose_sampling() {
  if (is_trained_whole()) {
    set("sampling", &ModelConfig::sampling, Sampling::kAll,
        "with so few labels choosing among them costs as much as training them all");
  } else {
    set("sampling", &ModelConfig::sampling, Sampling::kLsh,
        "finds the neurons that probably answer an example");
  }
  const std::uint32_t usual =
      is_narrow() ? kActiveNarrow : std::max(kActiveWide, facts_.labels / kLabelsPerActive);
  const std::uint32_t active = by_kind(usual / 2, usual, usual * 2);
  const std::uint32_t random = active / (is_best() && !is_narrow() ? kPerRandomBest : kPerRandom);
  set("random_negatives", &ModelConfig::random_negatives, random,
      "they include neurons that no bucket has");
  set("active_cap", &ModelConfig::active_cap, active - random,
      by_kind("half of the neurons that precision needs",
              "more cost time and gain little precision",
              "more of the neurons that compete for each example"));
  const int bits = static_cast<int>(std::bit_width(facts_.labels / kNeuronsPerBucket)) - 1;
  set("hash_bits", &ModelConfig::hash_bits, static_cast<std::uint32_t>(std::clamp(bits, 1, 20)),
      fmt::format("buckets of about {} neurons", kNeuronsPerBucket));
  set("tables", &ModelConfig::tables, 50u, "more add no neurons before the cap is reached");
}

std::uint64_t Chooser::examples_for_fraction(std::uint32_t volunteers) const {
  const double rest_per_commit = (1 - request_.commit_share) / request_.commit_share;
  return static_cast<std::uint64_t>(
      std::min(static_cast<double>(kRoundExamplesMax),
               kRowPerExample * model_.labels * rest_per_commit / volunteers));
}

// Rounds of about equal length, each long enough for a checkpoint: parts of an epoch, or several
// short epochs. Commits keep their fraction with one volunteer in a long run, and with two in a
// short run.
void Chooser::choose_rounds() {
  const std::uint64_t active = model_.sampling == Sampling::kAll
                                   ? model_.labels
                                   : model_.active_cap + model_.random_negatives;
  const std::uint64_t usual =
      std::max(kVisitsPerRound * model_.labels / active, examples_for_fraction(1));
  const std::uint64_t examples =
      std::max(std::min(kRoundExamplesUsual, usual), examples_for_fraction(kVolunteersFew));
  const std::uint64_t wanted = std::max(kRoundBatchesMin, examples / model_.batch_examples);
  const std::uint64_t epoch = batches_per_epoch(model_);
  const std::uint64_t rounds = std::max<std::uint64_t>(1, epoch / wanted);
  // Short epochs: a round has several of them, a number that divides the run's.
  const std::uint64_t epoch_examples = epoch * model_.batch_examples;
  const auto least = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      (examples_for_fraction(kVolunteersFew) + epoch_examples - 1) / epoch_examples, 1,
      std::max(1u, (model_.epochs + kRoundsFew - 1) / kRoundsFew)));
  if (!request_.epochs) model_.epochs = (model_.epochs + least - 1) / least * least;
  auto whole_epochs = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      (wanted + epoch / 2) / epoch, 1, std::max(1u, model_.epochs / kRoundsUsual)));
  while (model_.epochs % whole_epochs != 0) --whole_epochs;
  for (std::uint32_t more = least; whole_epochs < least && more * kRoundsFew <= model_.epochs;
       ++more) {
    if (model_.epochs % more == 0) whole_epochs = more;
  }
  const auto round = static_cast<std::uint32_t>((whole_epochs * epoch + rounds - 1) / rounds);
  const double commits = kRowPerExample * model_.labels;
  const double units = static_cast<double>(kVolunteersFew) * round * model_.batch_examples;
  set("round_batches", &ModelConfig::round_batches, round,
      fmt::format(
          "often enough to lose little; commits are up to {:.0f} % of two volunteers' bytes",
          100 * commits / (commits + units)));
}

void Chooser::choose_rates() {
  // A wide layer of rare labels learns best with small steps.
  set("output_rate", &ModelConfig::output_rate, has_rare_labels() ? 2e-3F : 3e-3F,
      "the best of the rates that were tried, over all data sets");
  set("input_rate", &ModelConfig::input_rate, has_rare_labels() ? 4e-3F : 6e-3F,
      "the best of the rates that were tried, over all data sets");
  // The recipe's number of epochs decides, not the requested one: a run that is extended later must
  // end like a run that had that length from the start.
  set("rate_decay", &ModelConfig::rate_decay,
      static_cast<float>(std::pow(kFinalRate, 1.0 / std::max(1u, own_epochs() - 1))),
      "smaller steps towards the end");
  set("warmup_batches", &ModelConfig::warmup_batches, kWarmupBatches,
      "the first steps of rows that have seen one example decide too much");
  set("gradient_step_log2", &ModelConfig::gradient_step_log2, kGradientStepLog2,
      "finer steps change no precision, and each is a bit per entry of every result");
  set("input_scale", &ModelConfig::input_scale, 0.2F, "small initial activations, soon outgrown");
  set("divergence_factor", &ModelConfig::divergence_factor, kDivergenceFactor,
      "no successful round rose so far above the best");
}

}  // namespace

Recipe recipe(const DatasetFacts& facts, const RecipeRequest& request) {
  return Chooser(facts, request).choose();
}

std::string trials_text(std::span<const RecipeTrial> trials) {
  std::string text;
  for (const RecipeTrial& trial : trials) {
    text += fmt::format("{} {} {} {} {:.6f};", trial.hidden, trial.wide_scale, trial.output_rate,
                        trial.epochs, trial.quality);
  }
  return text;
}

std::vector<RecipeTrial> stored_trials(const std::map<std::string, std::string>& settings) {
  std::vector<RecipeTrial> trials;
  const auto text = settings.find(kRecipeTrialsKey);
  if (text == settings.end()) return trials;
  std::istringstream entries(text->second);
  for (std::string entry; std::getline(entries, entry, ';');) {
    std::istringstream numbers(entry);
    RecipeTrial trial;
    numbers >> trial.hidden >> trial.wide_scale >> trial.output_rate >> trial.epochs;
    if (numbers >> trial.quality) trials.push_back(trial);
  }
  return trials;
}

}  // namespace gleaner
