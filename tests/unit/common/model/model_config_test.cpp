#include "common/model/model_config.hpp"

#include <catch2/catch.hpp>
#include <limits>
#include <map>
#include <string>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"

namespace gleaner {
namespace {

ModelConfig good() {
  ModelConfig config;
  config.points = 100;
  config.round_batches = 1;
  config.features = 10;
  config.labels = 1000;
  return config;
}

void require_refused(const ModelConfig& config, const std::string& field) {
  const Result<void> result = validate(config);
  REQUIRE_FALSE(result.ok());
  REQUIRE_THAT(result.error().message, Catch::Matchers::StartsWith(field));
}

}  // namespace

TEST_CASE("model config: the defaults are valid", "[model_config]") {
  REQUIRE(validate(good()).ok());
}

TEST_CASE("model config: a field out of range is refused by name", "[model_config]") {
  ModelConfig config = good();
  config.hidden = 100;
  require_refused(config, "hidden");
  config = good();
  config.output_shards = 1001;
  require_refused(config, "output_shards");
  config = good();
  config.input_shards = 3;
  require_refused(config, "input_shards");
  config = good();
  config.output_rate = std::numeric_limits<float>::quiet_NaN();
  require_refused(config, "output_rate");
  config = good();
  config.points = 0;
  require_refused(config, "points");
  config = good();
  config.hidden = 2048;
  config.batch_examples = 2048;
  REQUIRE(validate(config).ok());
  config.batch_examples = 2049;
  require_refused(config, "batch_examples");
}

TEST_CASE("model config: random sampling needs a hidden layer", "[model_config]") {
  ModelConfig config = good();
  config.sampling = Sampling::kRandom;
  REQUIRE(validate(config).ok());
  config.hidden = 0;
  require_refused(config, "sampling");
}

TEST_CASE("model config: a run of an earlier version is read", "[model_config]") {
  ModelConfig config = good();
  config.hidden = 0;
  const auto texts = model_fields(config);
  std::map<std::string, std::string> fields(texts.begin(), texts.end());
  REQUIRE(fields.erase("feature_list") == 0);
  fields.erase("wide_list_weight");
  fields.erase("wide_score_min");
  fields["feature_list"] = "256";
  REQUIRE(model_from_fields(fields).ok());
}

TEST_CASE("model config: epochs are a multiple of those of a round", "[model_config]") {
  ModelConfig config = good();
  config.points = 1000;
  config.batch_examples = 100;
  config.round_batches = 39;
  REQUIRE(epochs_per_round(config) == 3);
  for (const std::uint32_t epochs : {3u, 6u, 99u}) {
    config.epochs = epochs;
    REQUIRE(validate(config).ok());
  }
  for (const std::uint32_t epochs : {1u, 2u, 4u, 100u}) {
    config.epochs = epochs;
    require_refused(config, "epochs");
  }
  config.round_batches = 19;
  REQUIRE(epochs_per_round(config) == 1);
  REQUIRE(validate(config).ok());
}

}  // namespace gleaner
