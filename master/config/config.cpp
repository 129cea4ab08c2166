#include "master/config/config.hpp"

#include <algorithm>

#include "schema/versions.hpp"

namespace gleaner {
namespace {

constexpr const char* kEvaluationSampleKey = "evaluation.sample";

const ProgramText& program_text() {
  static const ProgramText text{
      "gleaner-master",
      kBuildVersion,
      "--train FILE --test FILE --store DIR (--local N | --listen HOST:PORT)",
      "Trains a wide sparse network: cuts it into shards, lends them to volunteers, and keeps "
      "every "
      "checkpoint in the store. The same command on a store that holds an unfinished run resumes "
      "it; the trained model depends on data, configuration and seed alone.",
      "  # Train on this machine with two volunteers inside the process.\n"
      "  gleaner-master --train train.txt --test test.txt --store run1 --local 2 --epochs 3\n"
      "  # Let volunteers come over the network: it prints the line with which they join.\n"
      "  gleaner-master --train train.txt --test test.txt --store run1 --listen 0.0.0.0:7070\n"
      "  # Train on from a model that gleaner export wrote, on other data.\n"
      "  gleaner-master --train more.txt --store run2 --local 2 --init-from model.safetensors\n"
      "  # Keep the settings in a file.\n"
      "  gleaner-master --print-config > run.toml; gleaner-master --config run.toml\n"
      "  # One JSON object a line, for programs (master/EVENTS.md).\n"
      "  gleaner-master --config run.toml --log-format json\n",
      "A key of which the value is auto follows from the data. `gleaner invite` makes and revokes\n"
      "invites, by which volunteers join.\n",
      ""};
  return text;
}

}  // namespace

ModelOverrides ModelOverrides::all(const ModelConfig& model) {
  ModelOverrides overrides;
  for_each_model_key([&](const auto& field) { overrides.set(field.member, model.*field.member); });
  return overrides;
}

ModelConfig ModelOverrides::applied_to(ModelConfig recipe) const {
  for_each_model_key([&](const auto& field) {
    if (has(field.name)) recipe.*field.member = values_.*field.member;
  });
  return recipe;
}

Result<MasterStart> load_master_config(const std::vector<std::string>& arguments) {
  MasterStart start;
  const Settings settings = master_settings(start.config);
  Result<TextToPrint> loaded = load_settings(settings, program_text(), {}, arguments);
  if (!loaded) return loaded.error();
  start.to_print = std::move(*loaded);
  if (!start.to_print) {
    if (auto checked = check(start.config); !checked) return checked.error();
  }
  return start;
}

std::map<std::string, std::string> effective_settings(const MasterConfig& config,
                                                      const ModelConfig& model) {
  MasterConfig effective = config;
  effective.seed = model.seed;
  effective.model = ModelOverrides::all(model);
  std::map<std::string, std::string> values = master_settings(effective).run_values();
  // A run without test examples has no sample yet. A later start may bring some.
  if (!effective.evaluation.sample) values.erase(kEvaluationSampleKey);
  return values;
}

std::optional<std::uint64_t> stored_evaluation_sample(
    const std::map<std::string, std::string>& settings) {
  const auto stored = settings.find(kEvaluationSampleKey);
  if (stored == settings.end()) return std::nullopt;
  MasterConfig config;
  master_settings(config).find_key(kEvaluationSampleKey)->value.set(stored->second);
  return config.evaluation.sample;
}

std::uint32_t effective_threads(const MasterConfig& config, std::uint32_t cores) {
  if (config.run.threads) return *config.run.threads;
  return std::max<std::uint32_t>(1, cores / std::max<std::uint32_t>(1, config.run.local));
}

std::string master_reference() {
  MasterConfig config;
  return print_reference(master_settings(config));
}

}  // namespace gleaner
