#include "master/announcement.hpp"

#include <utility>

#include "common/model/run_plan.hpp"

namespace gleaner {
namespace {

constexpr const char* kPageIsPlain =
    "the page is not encrypted: whoever is on the way reads it, and the invites that are shown to "
    "it; where others share the network, give --http 127.0.0.1:8080 and use ssh -L or a proxy with "
    "TLS";

}  // namespace

std::string join_command(const MasterConfig& config, const std::string& where) {
  if (config.network.listen.empty()) return {};
  if (!config.network.insecure) return "gleaner invite list " + config.run.store;
  return "gleaner-volunteer " + where + " --insecure";
}

RunFacts run_facts(const MasterConfig& config, const RunData& data) {
  RunFacts facts;
  facts.store = config.run.store;
  facts.rounds = RunPlan(data.model).round_count();
  facts.points = data.train->points();
  facts.test_points = data.test ? data.test->points() : 0;
  facts.features = data.model.features;
  facts.labels = data.model.labels;
  facts.hidden = data.model.hidden;
  facts.output_shards = data.model.output_shards;
  facts.epochs = data.model.epochs;
  facts.batch_examples = data.model.batch_examples;
  facts.staleness = data.model.staleness;
  facts.seed = data.model.seed;
  facts.local = config.run.local;
  facts.recipe = data.recipe;
  MasterConfig effective = config;
  effective.model = ModelOverrides::all(data.model);
  const Settings settings = master_settings(effective);
  facts.audit = settings.find_key("network.audit")->value.get();
  MasterConfig defaults;
  const Settings usual = master_settings(defaults);
  for (const Setting& setting : settings.all()) {
    std::string value = setting.value.get();
    const bool is_default = usual.find_key(setting.key)->value.get() == value;
    facts.settings.push_back(
        {setting.key, std::move(value), setting.unit, setting.doc, is_default});
  }
  return facts;
}

void announce(const MasterConfig& config, const RunData& data, RoundIndex checkpoint,
              const RunWeb* web, Console& console) {
  if (checkpoint == 0) console.event(data.recipe);
  console.event(RunStarted{run_facts(config, data), checkpoint > 0, checkpoint});
  if (web == nullptr) return;
  PageServed served = web->served();
  served.takes_invite = !config.network.insecure;
  console.event(served);
  if (!served.others.empty()) console.log(LogLevel::kWarning, kPageIsPlain);
}

}  // namespace gleaner
