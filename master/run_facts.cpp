#include "master/run_facts.hpp"

#include <string>

#include "common/model/run_plan.hpp"

namespace gleaner {
namespace {

// An address with an invite lets in whoever sees it, and this machine may have other users: the
// page says where the line is to be had.
std::string join_command(const MasterConfig& config, const std::string& where) {
  if (config.network.listen.empty()) return {};
  if (!config.network.insecure) return "gleaner invite list " + config.run.store;
  return "gleaner-volunteer " + where + " --insecure";
}

constexpr const char* kPageIsPlain =
    "the page is not encrypted: whoever is on the way reads it, and the invites that are shown to "
    "it; where others share the network, give --http 127.0.0.1:8080 and use ssh -L or a proxy with "
    "TLS";

RunStarted run_started(const MasterConfig& config, const RunData& data, RoundIndex checkpoint) {
  RunStarted started;
  started.store = config.run.store;
  started.resumed = checkpoint > 0;
  started.checkpoint = checkpoint;
  started.rounds = RunPlan(data.model).round_count();
  started.points = data.train->points();
  started.test_points = data.test ? data.test->points() : 0;
  started.features = data.model.features;
  started.labels = data.model.labels;
  started.hidden = data.model.hidden;
  started.output_shards = data.model.output_shards;
  started.epochs = data.model.epochs;
  started.batch_examples = data.model.batch_examples;
  started.staleness = data.model.staleness;
  started.seed = data.model.seed;
  started.local = config.run.local;
  return started;
}

}  // namespace

void announce(const MasterConfig& config, const RunData& data, RoundIndex checkpoint,
              const RunWeb* web, Console& console) {
  const RunStarted started = run_started(config, data, checkpoint);
  if (!started.resumed) console.event(data.recipe);
  console.event(started);
  if (web == nullptr) return;
  PageServed served = web->served();
  served.takes_invite = !config.network.insecure;
  console.event(served);
  if (!served.others.empty()) console.log(LogLevel::kWarning, kPageIsPlain);
}

RunFacts run_facts(const MasterConfig& config, const RunData& data, const std::string& where) {
  RunFacts facts;
  facts.store = config.run.store;
  facts.join = join_command(config, where);
  facts.points = data.train->points();
  facts.test_points = data.test ? data.test->points() : 0;
  facts.features = data.model.features;
  facts.labels = data.model.labels;
  facts.hidden = data.model.hidden;
  facts.output_shards = data.model.output_shards;
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

std::vector<BanShown> bans_shown(Entrance& entrance) {
  std::vector<BanShown> shown;
  if (!entrance.is_open()) return shown;
  for (auto& [key, rule] : entrance.gate().banned())
    shown.push_back({to_text(key), rule.name, rule.reason});
  return shown;
}

}  // namespace gleaner
