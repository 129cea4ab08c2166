#include "master/config/config.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

Result<MasterStart> load(const std::string& line) {
  return load_master_config(words(line));
}

std::string refusal(const std::string& line) {
  const Result<MasterStart> start = load(line);
  return start ? std::string("accepted") : start.error().message;
}

MasterConfig complete() {
  MasterConfig config;
  config.data.train = "train";
  config.run.store = "store";
  config.run.local = 2;
  return config;
}

// A model such as a recipe proposes.
ModelConfig recipe() {
  ModelConfig model;
  model.data_fingerprint = 99;
  model.points = 1000;
  model.round_batches = 8;
  model.features = 100;
  model.labels = 500;
  model.hidden = 64;
  model.output_shards = 8;
  return model;
}

// Members of an aggregate: the largest number of values it can be initialised from.
struct AnyValue {
  template <typename T>
  operator T() const;  // NOLINT: implicit on purpose, never defined
};

template <typename T, typename... Values>
constexpr std::size_t field_count() {
  if constexpr (requires { T{Values{}..., AnyValue{}}; }) {
    return field_count<T, Values..., AnyValue>();
  } else {
    return sizeof...(Values);
  }
}

}  // namespace

TEST_CASE("master config: the command lines that stay are read as written", "[master_config]") {
  const Result<MasterStart> local = load(
      "--train TRAIN --test TEST --store DIR --local 2 --epochs 3 --seed 1 --threads 1 "
      "--log-format json");
  REQUIRE(local.ok());
  REQUIRE_FALSE(local->to_print.has_value());
  MasterConfig expected;
  expected.data.train = "TRAIN";
  expected.data.test = "TEST";
  expected.run.store = "DIR";
  expected.run.local = 2;
  expected.run.threads = 1;
  expected.model.set(&ModelConfig::epochs, 3u);
  expected.seed = 1;
  expected.output.log_format = LogFormat::kJson;
  REQUIRE(local->config == expected);

  const Result<MasterStart> network =
      load("--train TRAIN --test TEST --store DIR --listen 127.0.0.1:7070 --epochs 3");
  REQUIRE(network.ok());
  REQUIRE(network->config.network.listen == "127.0.0.1:7070");
  REQUIRE(network->config.run.local == 0);
  REQUIRE(network->config.output.log_format == LogFormat::kText);
}

TEST_CASE("master config: what cannot run is refused with a remedy", "[master_config]") {
  REQUIRE_THAT(refusal("--store s --local 1"), Contains("give --train FILE"));
  REQUIRE_THAT(refusal("--train t --local 1"), Contains("give --store DIR"));
  REQUIRE_THAT(refusal("--train t --store s"), Contains("give --local N"));
  REQUIRE_THAT(refusal("--train t --store s --local 2 --min-volunteers 3"),
               StartsWith("run.min_volunteers is 3"));
  REQUIRE(refusal("--train t --store s --local 2 --min-volunteers 2") == "accepted");
  REQUIRE(refusal("--train t --store s --listen h:1 --min-volunteers 3") == "accepted");
  REQUIRE_THAT(refusal("--train t --store s --local 2 --silence-ms 2000"),
               StartsWith("network.silence_ms is 2000"));
  REQUIRE(refusal("--train t --store s --local 2 --silence-ms 2001") == "accepted");
  REQUIRE_THAT(refusal("--train t --store s --local 2 --http 0.0.0.0:8080"),
               Contains("invites take --listen"));
  REQUIRE_THAT(refusal("--train t --store s --listen h:1 --http example.org:80"),
               Contains("an address in numbers"));
  REQUIRE(refusal("--train t --store s --listen h:1 --advertise alpha.example:7") == "accepted");
  REQUIRE_THAT(refusal("--train t --store s --local 2 --advertise alpha"), Contains("give both"));
  REQUIRE_THAT(refusal("--train t --store s --listen h:1 --advertise 0.0.0.0"),
               Contains("such as trainer.example.org"));
  REQUIRE(refusal("--train t --store s --local 2 --purpose " + std::string(200, 'b')) ==
          "accepted");
  REQUIRE_THAT(refusal("--train t --store s --local 2 --purpose " + std::string(201, 'b')),
               StartsWith("run.purpose has 201 bytes"));
  REQUIRE_THAT(refusal("--train t --store s --local 2 --purpose a\x1b"),
               StartsWith("--purpose is"));
  REQUIRE_THAT(refusal("--train t --store s --local 2 --quiet --verbose"),
               Contains("exclude each other"));
  REQUIRE_THAT(refusal("--train t --store s --local 2 --hidden 5000"),
               StartsWith("--hidden is '5000': it must be an integer from 0 to 4096, or auto"));
}

TEST_CASE("master config: a text that is asked for needs no complete configuration",
          "[master_config]") {
  REQUIRE_THAT(*load("--help").value().to_print, Contains("Exit codes:"));
  REQUIRE_THAT(*load("--print-config").value().to_print, Contains("hidden = \"auto\""));
  REQUIRE_THAT(*load("--version").value().to_print, StartsWith("gleaner-master "));
}

TEST_CASE("master config: every default and every change survives --print-config",
          "[master_config]") {
  MasterConfig changed = complete();
  changed.data.test = "a b";
  changed.data.l2_normalise = false;
  changed.run.threads = 3;
  changed.seed = 5;
  changed.recipe = RecipeKind::kBest;
  changed.model = ModelOverrides::all(recipe());
  changed.model.set(&ModelConfig::sampling, Sampling::kRandom);
  changed.model.set(&ModelConfig::dropout, 0.1F);
  changed.network.listen = "[::1]:0";
  changed.network.advertise = "alpha";
  changed.network.insecure = true;
  changed.evaluation.sample = 1000;
  MasterConfig everything = complete();
  everything.evaluation.sample = kEvaluateAll;
  changed.core.balance_hysteresis = 1.0 / 3;
  changed.output.verbose = true;
  for (MasterConfig original : {MasterConfig{}, changed, everything}) {
    const std::string text = print_toml(master_settings(original), "title");
    MasterConfig read = original == changed ? MasterConfig{} : changed;
    const Result<void> result = read_toml(master_settings(read), text, "printed");
    REQUIRE(result.ok());
    // Paths are printed whole, since the text may become a file elsewhere.
    for (std::string* path : {&original.data.train, &original.data.test, &original.run.store}) {
      if (!path->empty()) *path = std::filesystem::absolute(*path);
    }
    REQUIRE(read == original);
  }
}

TEST_CASE("master config: the recipe decides what nobody has set", "[master_config]") {
  MasterConfig config = complete();
  config.seed = 42;
  config.model.set(&ModelConfig::hidden, 256u);
  config.model.set(&ModelConfig::dropout, 0.5F);
  ModelConfig expected = recipe();
  expected.seed = 42;
  expected.hidden = 256;
  expected.dropout = 0.5F;
  REQUIRE(effective_model(config, recipe()).value() == expected);
}

TEST_CASE("master config: every field of a model can be overridden", "[master_config]") {
  std::size_t fields = 0;
  for_each_model_key([&](const auto&) { ++fields; });
  // Five come from the data, one from a model to begin with, one from label texts and one from an
  // earlier version; and the seed is always set.
  REQUIRE(field_count<ModelConfig>() == fields + 5 + 1 + 1 + 2);

  ModelConfig other = recipe();
  for_each_model_key([&](const auto& field) {
    auto& value = other.*field.member;
    using T = std::remove_reference_t<decltype(value)>;
    value = value == field.low ? field.high : field.low;
    static_assert(!std::is_const_v<T>);
  });
  ModelConfig merged = ModelOverrides::all(other).applied_to(recipe());
  REQUIRE(merged == other);
  for_each_model_key(
      [&](const auto& field) { REQUIRE(merged.*field.member != recipe().*field.member); });
}

TEST_CASE("master config: the range of every model key is the range that validation allows",
          "[master_config]") {
  ModelConfig base = recipe();
  base.labels = kLabelsMax;
  base.points = std::uint64_t{1} << 40;
  for_each_model_key([&](const auto& field) {
    for (const auto bound : {field.low, field.high}) {
      ModelConfig model = base;
      model.*field.member = bound;
      // The hidden layer must divide into its shards: that is not a matter of one key.
      if (std::string(field.name) == "input_shards") {
        model.hidden = model.input_shards * kLanes;
      }
      INFO(field.name);
      CHECK(validate(model).ok());
    }
  });
}

TEST_CASE("master config: a model that does not fit is refused by key", "[master_config]") {
  MasterConfig config = complete();
  config.model.set(&ModelConfig::hidden, 100u);
  REQUIRE_THAT(effective_model(config, recipe()).error().message,
               StartsWith("model.hidden is 100: it must be a multiple of 16"));
  config = complete();
  config.model.set(&ModelConfig::output_shards, 501u);
  REQUIRE_THAT(effective_model(config, recipe()).error().message,
               StartsWith("model.output_shards is 501: there are only 500 labels"));
  ModelConfig empty = recipe();
  empty.points = 0;
  const Result<ModelConfig> refused = effective_model(complete(), empty);
  REQUIRE(refused.error().code == ErrorCode::kInvalidData);
  REQUIRE_THAT(refused.error().message,
               StartsWith("the training file cannot be used: points is 0"));
}

TEST_CASE("master config: a store remembers the model in effect, and no secrets or places",
          "[master_config]") {
  MasterConfig config = complete();
  config.seed = 7;
  ModelConfig model = recipe();
  model.seed = 7;
  const std::map<std::string, std::string> settings = effective_settings(config, model);
  REQUIRE(settings.at("model.seed") == "7");
  REQUIRE(settings.at("model.hidden") == "64");
  REQUIRE(settings.at("model.sampling") == "lsh");
  REQUIRE(settings.at("model.gradient_step_log2") == "-10");
  REQUIRE(settings.at("data.l2_normalise") == "true");
  REQUIRE(settings.at("evaluation.every_epochs") == "1");
  for (const auto& [key, value] : settings) {
    INFO(key);
    if (key != "model.recipe") REQUIRE(value != "auto");
    REQUIRE(value != "secret");
    REQUIRE((key.starts_with("model.") || key.starts_with("data.l2") ||
             key.starts_with("evaluation.")));
  }
  REQUIRE(settings.count("evaluation.sample") == 0);
  // Another machine, port or thread count is the same run.
  MasterConfig elsewhere = config;
  elsewhere.run.threads = 9;
  elsewhere.run.local = 0;
  elsewhere.network.listen = "h:1";
  elsewhere.data.train = "/other/path";
  REQUIRE(effective_settings(elsewhere, model) == settings);
}

TEST_CASE("master config: the test examples of an evaluation are a number, all of them or auto",
          "[master_config]") {
  const std::string line = "--train t --store s --local 1";
  REQUIRE_FALSE(load(line).value().config.evaluation.sample);
  REQUIRE_FALSE(load(line + " --evaluate-sample auto").value().config.evaluation.sample);
  REQUIRE(load(line + " --evaluate-sample all").value().config.evaluation.sample == kEvaluateAll);
  REQUIRE(load(line + " --evaluate-sample 700").value().config.evaluation.sample == 700);
  REQUIRE_THAT(load(line + " --evaluate-sample 0").error().message,
               Contains("an integer from 1 to 1099511627776, all, or auto"));
  for (const std::uint64_t sample : {kEvaluateAll, std::uint64_t{700}}) {
    MasterConfig config = complete();
    config.evaluation.sample = sample;
    const auto stored = effective_settings(config, recipe());
    REQUIRE(stored.at("evaluation.sample") == (sample == kEvaluateAll ? "all" : "700"));
    REQUIRE(stored_evaluation_sample(stored) == sample);
  }
  REQUIRE_FALSE(stored_evaluation_sample(effective_settings(complete(), recipe())));
}

TEST_CASE("master config: local volunteers share the cores", "[master_config]") {
  MasterConfig config = complete();
  config.run.local = 0;
  REQUIRE(effective_threads(config, 8) == 8);
  config.run.local = 3;
  REQUIRE(effective_threads(config, 8) == 2);
  REQUIRE(effective_threads(config, 2) == 1);
  config.run.threads = 5;
  REQUIRE(effective_threads(config, 2) == 5);
}

TEST_CASE("master config: CONFIGURATION.md says what the table says", "[master_config]") {
  std::ifstream file(GLEANER_SOURCE_DIR "/master/CONFIGURATION.md");
  REQUIRE(file.good());
  std::stringstream text;
  text << file.rdbuf();
  // Renew it by hand from `gleaner-master --print-reference` after changing a key.
  REQUIRE_THAT(text.str(), Contains(master_reference()));
}

}  // namespace gleaner
