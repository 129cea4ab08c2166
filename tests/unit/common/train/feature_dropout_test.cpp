#include <catch2/catch.hpp>
#include <set>

#include "common/train/prepared_examples.hpp"
#include "tests/unit/common/train/input_examples.hpp"

namespace gleaner {
namespace {

ModelConfig dropout_config(float share) {
  ModelConfig config;
  config.seed = 3;
  config.features = 4000;
  config.feature_dropout = share;
  return config;
}

// (position, feature) of everything kept.
std::set<std::pair<std::size_t, std::uint32_t>> kept(std::span<const ExampleView> examples) {
  std::set<std::pair<std::size_t, std::uint32_t>> result;
  for (std::size_t e = 0; e < examples.size(); ++e) {
    for (const std::uint32_t feature : examples[e].features) result.insert({e, feature});
  }
  return result;
}

}  // namespace

TEST_CASE("feature dropout: it leaves out its share and scales up the others",
          "[feature_dropout]") {
  FeatureDropout dropout(dropout_config(0.25F));
  const InputExamples examples = make_input_examples(6, 200, 4000, 60);
  const std::span<const ExampleView> thinned = dropout.apply(7, examples.views);
  REQUIRE(thinned.size() == 200);
  double all = 0;
  double left = 0;
  for (std::size_t e = 0; e < 200; ++e) {
    const ExampleView& before = examples.views[e];
    const ExampleView& after = thinned[e];
    REQUIRE(after.labels.data() == before.labels.data());
    all += static_cast<double>(before.features.size());
    left += static_cast<double>(after.features.size());
    std::size_t i = 0;
    for (std::size_t j = 0; j < after.features.size(); ++j, ++i) {
      while (before.features[i] != after.features[j]) ++i;
      REQUIRE(after.values[j] == before.values[i] * (1.0F / 0.75F));
    }
  }
  REQUIRE(all > 5'000);
  REQUIRE(left / all == Approx(0.75).margin(0.03));  // 5 sigma
}

TEST_CASE("feature dropout: what is left out follows from seed, batch, position and feature",
          "[feature_dropout]") {
  FeatureDropout dropout(dropout_config(0.5F));
  const InputExamples examples = make_input_examples(6, 50, 4000, 60);
  const auto first = kept(dropout.apply(7, examples.views));
  const auto other = kept(dropout.apply(8, examples.views));
  REQUIRE(first != other);
  FeatureDropout again(dropout_config(0.5F));
  REQUIRE(kept(again.apply(7, examples.views)) == first);
  ModelConfig config = dropout_config(0.5F);
  config.seed = 4;
  REQUIRE(kept(FeatureDropout(config).apply(7, examples.views)) != first);
  // A point that is twice in a batch is thinned in two ways.
  const std::vector<ExampleView> twice = {examples.views[0], examples.views[0]};
  const std::span<const ExampleView> thinned = again.apply(7, twice);
  REQUIRE_FALSE(std::equal(thinned[0].features.begin(), thinned[0].features.end(),
                           thinned[1].features.begin(), thinned[1].features.end()));
}

TEST_CASE("feature dropout: without it the examples are as they are", "[feature_dropout]") {
  FeatureDropout dropout(dropout_config(0.0F));
  const InputExamples examples = make_input_examples(6, 5, 4000, 60);
  REQUIRE(dropout.apply(7, examples.views).data() == examples.views.data());
}

}  // namespace gleaner
