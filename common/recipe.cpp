#include "common/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace gleaner {
namespace {

// Up to so many labels, training all neurons is as cheap as choosing among them.
constexpr std::uint32_t kLabelsTrainedWhole = 2'000;
// Active neurons besides the true labels: fewer cost precision, more cost time. In a narrow layer a
// larger part of it competes for each example.
constexpr std::uint32_t kNarrowLabels = 10'000;
// Beyond, a layer of 512 units takes gigabytes.
constexpr std::uint32_t kLabelsVeryWide = 200'000;
// The recipe best takes more time an example where there are so few points that they are soon gone
// through.
constexpr std::uint64_t kFewPoints = 25'000;
constexpr std::uint32_t kActiveNarrow = 1'500;
constexpr std::uint32_t kActiveWide = 1'000;
constexpr std::uint32_t kActiveShare = 200;      // of very wide layers: one neuron in so many
constexpr std::uint32_t kActiveCounted = 4'000;  // of the recipe best, where it counts meetings
// Of these, one in so many is drawn at random: it meets neurons that no bucket brings. In a wide
// layer half of a generous number does best.
constexpr std::uint32_t kRandomShare = 10;
constexpr std::uint32_t kRandomShareBest = 2;
constexpr std::uint32_t kNeuronsPerBucket = 200;
// The recipe best counts in how many tables an example meets a neuron, where few points leave the
// time for it. Large buckets make for better counts, and the better the negatives from tables, the
// less the random ones need to count.
constexpr std::uint32_t kNeuronsPerBucketCounted = 800;
// Rates rise over so many batches: without, the first steps of rows that have seen one example
// decide too much (1.3 points of P@1 on eurlex-4.3k).
constexpr std::uint32_t kWarmupBatches = 160;
// Where one label in thousands is true, gradients of the others are tiny, but all point one way.
constexpr float kEpsilon = 1e-3F;
constexpr std::int32_t kGradientStepLog2 = -8;
// The lag grows by one every so many batches.
constexpr std::uint32_t kStalenessRise = 40;
constexpr float kDivergenceFactor = 2.0F;
constexpr std::uint32_t kBatchExamples = 128;
constexpr const char* kWhyBatchExamples =
    "shares each row's update among examples and still gives many updates";
constexpr std::uint64_t kRoundBatchesMin = 64;
// A round visits each row about so often, so that storing the rows it touched (about 5 us of
// processor a row) is cheap beside training them (about 0.1 us a visit).
constexpr std::uint64_t kVisitsPerRound = 350;
// Longer rounds are only for the share of commits of few volunteers.
constexpr std::uint64_t kRoundExamplesUsual = 500'000;
// Bytes of a committed row for each that a unit takes for an example: about 0.4 H + 14 to 2 H
// (tests/net/RESULTS.md).
constexpr double kRowPerExample = 0.25;
constexpr std::uint32_t kVolunteersFew = 2;
// A run has so many rounds at least, since each is a checkpoint that can be evaluated, or fewer
// where commits would take more than their share.
constexpr std::uint32_t kRoundsUsual = 4;
constexpr std::uint32_t kRoundsFew = 2;

// What the recipe best takes for the hidden layer: the more units, the more dropout.
struct BestLayer {
  std::uint32_t hidden = 0;
  std::uint32_t batch_examples = 0;
  float dropout = 0;
  const char* why_hidden = "a wide layer remembers more of each label's examples";
  const char* why_batch = "steadier updates, which a run of many epochs can afford";
};

// Which neurons an example trains besides its true labels, where they are sampled.
struct Negatives {
  std::uint32_t active = 0;
  std::uint32_t random_share = kRandomShare;
  std::uint32_t neurons_per_bucket = kNeuronsPerBucket;
  const char* why_tables = "more bring nothing new before the cap is reached";
};

// Writes one field after the other, each with its reason.
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
    choose_shape();
    choose_schedule();
    choose_sampling();
    choose_rounds();
    choose_rates();
    choose_regularisation();
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

  [[nodiscard]] bool has_few_points() const { return facts_.points <= kFewPoints; }

  // Few points for many labels: negatives that are worth their time, a wide layer with much
  // dropout, large batches and initial weights near zero.
  [[nodiscard]] bool is_wide_with_few_points() const {
    return is_best() && !is_narrow() && facts_.labels <= kLabelsVeryWide && has_few_points();
  }

  [[nodiscard]] BestLayer best_layer() const;
  [[nodiscard]] Negatives negatives() const;

  void choose_shape();
  void choose_schedule();
  void choose_sampling();
  void choose_rounds();
  // Of a round in which so many volunteers keep the commits' share, if it reaches every row.
  [[nodiscard]] std::uint64_t examples_for_share(std::uint32_t volunteers) const;
  void choose_rates();
  void choose_regularisation();

  const DatasetFacts& facts_;
  const RecipeRequest& request_;
  RecipeKind kind_;
  ModelConfig model_;
  std::vector<RecipeChoice> choices_;
};

BestLayer Chooser::best_layer() const {
  if (facts_.labels > kLabelsVeryWide) {
    return {256, 256, 0.4F, "as wide as memory for so many labels allows"};
  }
  if (is_wide_with_few_points()) return {1'024, 512, 0.5F};
  if (!is_narrow()) return {512, 256, 0.4F};
  if (is_trained_whole() && has_few_points()) {
    return {.hidden = 1'024,
            .batch_examples = 64,
            .dropout = 0.5F,
            .why_batch = "few points make few batches, and each label is true for many of them"};
  }
  return {.hidden = 512,
          .batch_examples = kBatchExamples,
          .dropout = 0.4F,
          .why_batch = kWhyBatchExamples};
}

Negatives Chooser::negatives() const {
  if (is_wide_with_few_points()) {
    return {.active = kActiveCounted,
            .neurons_per_bucket = kNeuronsPerBucketCounted,
            .why_tables = "enough to count in"};
  }
  if (is_narrow()) return {.active = by_kind(kActiveNarrow / 2, kActiveNarrow, kActiveNarrow * 2)};
  const std::uint32_t usual = std::max(kActiveWide, facts_.labels / kActiveShare);
  if (is_best()) return {.active = usual * 2, .random_share = kRandomShareBest};
  return {.active = kind_ == RecipeKind::kFast ? usual / 2 : usual};
}

void Chooser::choose_shape() {
  const BestLayer best = best_layer();
  set("hidden", &ModelConfig::hidden, by_kind(128u, 128u, best.hidden),
      is_best() ? best.why_hidden : "learns nearly as well as a wider layer in much less time");
  set("output_shards", &ModelConfig::output_shards, std::min<std::uint32_t>(16, facts_.labels),
      "enough to share among several volunteers");
}

void Chooser::choose_schedule() {
  set("epochs", &ModelConfig::epochs, by_kind(3u, 5u, 10u),
      by_kind("a first look", "precision has nearly settled", "regularised layers learn longer"));
  const BestLayer best = best_layer();
  set("batch_examples", &ModelConfig::batch_examples,
      is_best() ? best.batch_examples : kBatchExamples,
      is_best() ? best.why_batch : kWhyBatchExamples);
  model_.epochs = request_.epochs.value_or(model_.epochs);
  model_.batch_examples = request_.batch_examples.value_or(model_.batch_examples);
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
        "finds the neurons that answer most to an example");
  }
  const Negatives chosen = negatives();
  const std::uint32_t random = chosen.active / chosen.random_share;
  set("random_negatives", &ModelConfig::random_negatives, random,
      "they meet neurons that no bucket brings");
  set("active_cap", &ModelConfig::active_cap, chosen.active - random,
      by_kind("half of what precision asks for", "more gain little precision for their time",
              "more of the neurons that compete for each example"));
  const int bits = static_cast<int>(std::bit_width(facts_.labels / chosen.neurons_per_bucket)) - 1;
  set("hash_bits", &ModelConfig::hash_bits, static_cast<std::uint32_t>(std::clamp(bits, 1, 20)),
      fmt::format("buckets of about {} neurons", chosen.neurons_per_bucket));
  set("tables", &ModelConfig::tables, 50u, chosen.why_tables);
}

std::uint64_t Chooser::examples_for_share(std::uint32_t volunteers) const {
  const double rest_per_commit = (1 - request_.commit_share) / request_.commit_share;
  return static_cast<std::uint64_t>(
      std::min(static_cast<double>(kRoundExamplesMax),
               kRowPerExample * model_.labels * rest_per_commit / volunteers));
}

// Rounds of about equal length, each long enough to be worth a checkpoint: parts of an epoch, or
// several epochs where these are short. In a long run one volunteer alone keeps the commits' share,
// in a short one two do.
void Chooser::choose_rounds() {
  const std::uint64_t active = model_.sampling == Sampling::kAll
                                   ? model_.labels
                                   : model_.active_cap + model_.random_negatives;
  const std::uint64_t usual =
      std::max(kVisitsPerRound * model_.labels / active, examples_for_share(1));
  const std::uint64_t examples =
      std::max(std::min(kRoundExamplesUsual, usual), examples_for_share(kVolunteersFew));
  const std::uint64_t wanted = std::max(kRoundBatchesMin, examples / model_.batch_examples);
  const std::uint64_t epoch = batches_per_epoch(model_);
  const std::uint64_t rounds = std::max<std::uint64_t>(1, epoch / wanted);
  // Several epochs are one round where these are short: as many as divide the run.
  const std::uint64_t epoch_examples = epoch * model_.batch_examples;
  const auto least = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      (examples_for_share(kVolunteersFew) + epoch_examples - 1) / epoch_examples, 1,
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
  set("output_rate", &ModelConfig::output_rate, is_wide_with_few_points() ? 4e-3F : 3e-3F,
      is_wide_with_few_points() ? "larger batches make fewer updates"
                                : "none tried did better on all the sets tried");
  set("input_rate", &ModelConfig::input_rate, is_best() && is_narrow() ? 9e-3F : 6e-3F,
      "none tried did better on all the sets tried");
  set("rate_decay", &ModelConfig::rate_decay, by_kind(0.7F, 0.9F, 0.8F),
      "the last epochs settle what the first have found");
  set("warmup_batches", &ModelConfig::warmup_batches, kWarmupBatches,
      "the first steps of rows that have seen one example decide too much");
  if (!is_trained_whole()) {
    set("epsilon", &ModelConfig::epsilon, kEpsilon,
        "steps as long for tiny gradients as for large ones would push all rows below zero at "
        "first");
  }
  set("gradient_step_log2", &ModelConfig::gradient_step_log2, kGradientStepLog2,
      "finer steps change no precision, and each is a bit an entry of every result");
  set("input_scale", &ModelConfig::input_scale, is_wide_with_few_points() ? 0.03F : 0.2F,
      "small initial codes, soon outgrown");
  set("divergence_factor", &ModelConfig::divergence_factor, kDivergenceFactor,
      "no round that came to anything rose so far above the best");
}

void Chooser::choose_regularisation() {
  set("dropout", &ModelConfig::dropout, by_kind(0.0F, 0.0F, best_layer().dropout),
      by_kind("a narrow layer has no units to spare", "a narrow layer has no units to spare",
              "keeps a wide layer from learning the training points by heart"));
}

}  // namespace

Recipe recipe(const DatasetFacts& facts, const RecipeRequest& request) {
  return Chooser(facts, request).choose();
}

}  // namespace gleaner
