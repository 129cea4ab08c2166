#include <catch2/catch.hpp>

#include "master/run_data.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kTestExamples = 310'000;

// 800,000 examples of three labels each, 314,000 labels.
ModelConfig wide() {
  ModelConfig model;
  model.points = 800'000;
  model.labels = 314'000;
  model.features = 200'000;
  model.active_cap = 997;
  model.random_negatives = 0;
  model.epochs = 6;
  return model;
}

std::uint64_t sample(const ModelConfig& model, std::uint32_t every_epochs = 1,
                     std::uint64_t test_examples = kTestExamples) {
  return evaluation_sample(model, 3 * model.points, every_epochs, test_examples);
}

}  // namespace

TEST_CASE("evaluation sample: scoring it is a tenth of the work of training", "[evaluation]") {
  // 800,000 x (997 + 3) x 3 passes x 4 / 10 over 314,000.
  REQUIRE(sample(wide()) == 3057);
  ModelConfig with_random = wide();
  with_random.active_cap = 497;
  with_random.random_negatives = 500;
  REQUIRE(sample(with_random) == 3057);
  // Uniform sampling has no neurons from tables besides its own.
  with_random.sampling = Sampling::kRandom;
  REQUIRE(sample(with_random) == 1528);
  // Without a hidden layer, scoring 314,000 labels costs 10.5 steps of training.
  ModelConfig without = wide();
  without.hidden = 0;
  REQUIRE(sample(without) == 7643);
  without.labels = 3'000;
  REQUIRE(sample(without) == kTestExamples);
  ModelConfig wider = wide();
  wider.hidden *= 4;
  REQUIRE(sample(wider) == 3057);
}

TEST_CASE("evaluation sample: it grows with what is trained between two evaluations",
          "[evaluation]") {
  REQUIRE(sample(wide(), 2) == 6114);
  REQUIRE(sample(wide(), 0) == 18'343);
  REQUIRE(sample(wide(), 9) == 18'343);
  // Rounds of three epochs: there is no checkpoint before.
  ModelConfig long_rounds = wide();
  long_rounds.round_batches = static_cast<std::uint32_t>(3 * batches_per_epoch(long_rounds));
  REQUIRE(sample(long_rounds) == 9171);
}

TEST_CASE("evaluation sample: small test sets are scored whole, and of others 1,000 at least",
          "[evaluation]") {
  for (const std::uint64_t whole : {0, 1, 999, 1000, 1001, 3057}) {
    REQUIRE(sample(wide(), 1, whole) == whole);
  }
  REQUIRE(sample(wide(), 1, 3058) == 3057);
  ModelConfig short_epochs = wide();
  short_epochs.points = 1000;
  REQUIRE(sample(short_epochs, 1, 999) == 999);
  REQUIRE(sample(short_epochs, 1, 1001) == 1000);
  ModelConfig few_labels = wide();
  few_labels.labels = 1000;
  REQUIRE(sample(few_labels) == kTestExamples);
}

}  // namespace gleaner
