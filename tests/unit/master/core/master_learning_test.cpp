// A run watches how well it learns: rounds that diverge, rates that were cut, an early end.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/support/master_driver.hpp"

namespace gleaner {
namespace {

constexpr std::int64_t kNat = std::int64_t{1} << 20;

ModelConfig watched_model(float divergence_factor) {
  ModelConfig model = tiny_model();
  model.divergence_factor = divergence_factor;
  return model;
}

// Trains with one volunteer, which reports these losses of a batch.
void train(MasterDriver& master, const std::function<std::int64_t(BatchIndex)>& loss) {
  master.volunteer(master.join("ann")).set_loss(loss);
  master.settle();
  REQUIRE(master.done.has_value());
}

bool was_folded(const MasterDriver& master, const std::string& round) {
  return std::find(master.stored.begin(), master.stored.end(), "fold " + round) !=
         master.stored.end();
}

}  // namespace

TEST_CASE("learning: a round whose loss rises too far is not folded", "[master]") {
  // Round 1 is of batches 3 and 4; shards are four, so a batch of two examples has 2 nats each.
  const auto loss = [](BatchIndex batch) { return batch == 3 || batch == 4 ? 3 * kNat : kNat; };
  {
    const ModelConfig model = watched_model(2.0F);
    MasterDriver master(model, tiny_core_config(model));
    train(master, loss);
    REQUIRE(master.trains_again<Divergence>());
    REQUIRE(master.reason<Divergence>() == Divergence{Divergence::Sign::kLoss, 6.0, 2.0});
    REQUIRE(was_folded(master, "0"));
    REQUIRE_FALSE(was_folded(master, "1"));
  }
  for (const float factor : {0.0F, 3.0F}) {
    const ModelConfig model = watched_model(factor);
    MasterDriver master(model, tiny_core_config(model));
    train(master, loss);
    REQUIRE(master.outcome() == Outcome::kFinished);
  }
}

TEST_CASE("learning: the first round is held against the model its first batch met", "[master]") {
  const ModelConfig model = watched_model(2.0F);
  MasterDriver master(model, tiny_core_config(model));
  train(master, [](BatchIndex batch) { return batch == 0 ? kNat : 4 * kNat; });
  REQUIRE(master.trains_again<Divergence>());
  // One batch of 2 nats an example and two of 8.
  REQUIRE(master.reason<Divergence>() == Divergence{Divergence::Sign::kLoss, 6.0, 2.0});
  REQUIRE_FALSE(was_folded(master, "0"));
}

TEST_CASE("learning: after a resume a round is held against those of before", "[master]") {
  const ModelConfig model = watched_model(2.0F);
  ResumePoint resume{1, false};
  resume.learning.add_round(0.5, 1.0);
  MasterDriver master(model, tiny_core_config(model), resume);
  train(master, [](BatchIndex) { return kNat; });
  REQUIRE(master.trains_again<Divergence>());
  REQUIRE(master.reason<Divergence>().before == 0.5);
}

TEST_CASE("learning: a round in which quantized activations collapse is not folded", "[master]") {
  // Batches large enough that each is judged by itself.
  const auto model_of = [](float divergence_factor) {
    ModelConfig model = watched_model(divergence_factor);
    model.labels = 600;
    model.batch_examples = 600;
    model.points = 3000;
    return model;
  };
  const auto length = [](BatchIndex batch) { return batch == 4 ? 0.25 : 8.0; };
  {
    const ModelConfig model = model_of(2.0F);
    MasterDriver master(model, tiny_core_config(model));
    master.code_length = length;
    train(master, [](BatchIndex) { return kNat; });
    REQUIRE(master.trains_again<Divergence>());
    REQUIRE(master.reason<Divergence>() == Divergence{Divergence::Sign::kCodeLength, 0.25, 8.0});
    REQUIRE(was_folded(master, "0"));
    REQUIRE_FALSE(was_folded(master, "1"));
  }
  {
    const ModelConfig model = model_of(0.0F);
    MasterDriver master(model, tiny_core_config(model));
    master.code_length = length;
    train(master, [](BatchIndex) { return kNat; });
    REQUIRE(master.outcome() == Outcome::kFinished);
  }
}

TEST_CASE("learning: what the rounds before have ruined is logged, not trained again", "[master]") {
  ModelConfig model = watched_model(2.0F);
  model.labels = 600;
  model.batch_examples = 600;
  model.points = 3000;
  CoreConfig settings = tiny_core_config(model);
  settings.rows_per_chunk = 150;
  ResumePoint resume{1, false};
  resume.learning.add_round(1.0, 200.0);
  MasterDriver master(model, settings, resume);
  master.code_length = [](BatchIndex) { return 8.0; };
  train(master, [](BatchIndex) { return kNat / 1000; });
  REQUIRE(master.outcome() == Outcome::kFinished);
  const auto remarks = master.notices<LogLine>();
  REQUIRE(std::any_of(remarks.begin(), remarks.end(), [](const LogLine& remark) {
    return remark.kind == "weak_codes" && remark.message.find("had been 200") != std::string::npos;
  }));
}

TEST_CASE("learning: from a cut on both rates are half", "[master]") {
  ModelConfig model = watched_model(2.0F);
  model.output_rate = 0.5F;
  model.input_rate = 0.25F;
  ResumePoint resume{1, false};
  resume.rate_cuts = {0, 5, 5};
  MasterDriver master(model, tiny_core_config(model), resume);
  const SessionId ann = master.join("ann");
  master.settle();
  REQUIRE(master.outcome() == Outcome::kFinished);
  for (const BatchIndex batch : {3, 4}) {
    REQUIRE(master.volunteer(ann).rate_of(batch) == 0.25F);
    REQUIRE(master.input_rates.at(batch) == 0.125F);
  }
  for (const BatchIndex batch : {5, 9}) {
    REQUIRE(master.volunteer(ann).rate_of(batch) == 0.0625F);
    REQUIRE(master.input_rates.at(batch) == 0.03125F);
  }
}

TEST_CASE("learning: the patience that nobody chose grows with the run", "[master]") {
  // P@1 of eurlex-4.3k and citeulike-t after each of 15 epochs, in thousandths.
  const auto ends_at = [](const std::vector<int>& p_at_1) {
    LearningSoFar learning;
    for (std::size_t i = 0; i < p_at_1.size(); ++i) {
      learning.add_evaluation(static_cast<RoundIndex>(i + 1), p_at_1[i] / 1000.0);
      if (learning.is_past_best(kPatienceAuto)) return std::pair(i + 1, learning.best_checkpoint);
    }
    return std::pair(std::size_t{0}, learning.best_checkpoint);
  };
  REQUIRE(ends_at({894, 905, 913, 914, 915, 916, 915, 914, 914, 915, 915, 915, 914, 915, 915}) ==
          std::pair(std::size_t{11}, RoundIndex{6}));
  REQUIRE(ends_at({624, 642, 635, 634, 634, 632, 626, 627}) ==
          std::pair(std::size_t{7}, RoundIndex{2}));
  // A slow rise, and a late beginning, are waited for.
  REQUIRE(ends_at({1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3}).first == 0);
  REQUIRE(ends_at({1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9}).first == 0);
  REQUIRE(ends_at({0, 0, 0, 0, 0, 0, 0, 0, 1}).first == 0);
}

TEST_CASE("learning: a run that gains nothing more ends early", "[master]") {
  ModelConfig model = tiny_model();
  model.epochs = 6;
  CoreConfig settings = tiny_core_config(model);
  settings.test_points = 4;
  settings.patience = {2, 0};
  SECTION("after N evaluations without a higher precision") {
    MasterDriver master(model, settings);
    master.precisions = {0.1, 0.3, 0.3, 0.2, 0.9};
    train(master, [](BatchIndex) { return kNat; });
    REQUIRE(master.outcome() == Outcome::kFinished);
    REQUIRE(master.core().checkpoint() == 8);  // of two rounds an epoch
  }
  SECTION("not when some are higher in between") {
    MasterDriver master(model, settings);
    master.precisions = {0.1, 0.1, 0.2, 0.2, 0.3, 0.3};
    train(master, [](BatchIndex) { return kNat; });
    REQUIRE(master.core().checkpoint() == 12);
  }
  SECTION("counted over the run's starts") {
    ResumePoint resume{4, true};
    resume.learning.add_evaluation(2, 0.5);
    resume.learning.add_evaluation(4, 0.4);
    MasterDriver master(model, settings, resume);
    master.precisions = {0.5};
    train(master, [](BatchIndex) { return kNat; });
    REQUIRE(master.core().checkpoint() == 6);
  }
  SECTION("never without patience") {
    settings.patience = {};
    MasterDriver master(model, settings);
    train(master, [](BatchIndex) { return kNat; });
    REQUIRE(master.core().checkpoint() == 12);
  }
}

}  // namespace gleaner
