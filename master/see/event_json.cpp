#include <cmath>
#include <type_traits>

#include "master/see/event_text.hpp"
#include "master/see/json_values.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {
namespace {

// Rounds a measurement to tenths: further digits mean nothing.
Json tenths(double value) {
  return known(value < 0 ? value : std::round(value * 10) / 10);
}

struct EventJson {
  Json operator()(const RecipeChosen& e) const;
  Json operator()(const RunStarted& e) const;
  Json operator()(const Listening& e) const;
  Json operator()(const PageServed& e) const;
  Json operator()(const VolunteerJoined& e) const;
  Json operator()(const VolunteerLeft& e) const;
  Json operator()(const CheckpointSaved& e) const;
  Json operator()(const Evaluated& e) const;
  Json operator()(const Paused& e) const;
  Json operator()(const RatesCut& e) const;
  Json operator()(const Resumed& e) const;
  Json operator()(const BackedUp& e) const;
  Json operator()(const RunStopped& e) const;
  Json operator()(const RunFinished& e) const;
  Json operator()(const RunFailed& e) const;
  Json operator()(const LogLine& e) const;
};

}  // namespace

Json EventJson::operator()(const RecipeChosen& e) const {
  return {{"event", "recipe"}, {"recipe", e.recipe}, {"values", values_of(e)}};
}

Json EventJson::operator()(const RunStarted& e) const {
  const RunFacts& facts = e.facts;
  Json json = {{"event", "started"},
               {"store", facts.store},
               {"resumed", e.resumed},
               {"checkpoint", e.checkpoint},
               {"rounds", facts.rounds}};
  visit_data_fields(facts, [&](const char* name, auto value) { json[name] = value; });
  json.update({{"epochs", facts.epochs},
               {"batch_examples", facts.batch_examples},
               {"staleness", facts.staleness},
               {"seed", facts.seed},
               {"local", facts.local}});
  return json;
}

Json EventJson::operator()(const Listening& e) const {
  return {{"event", "listening"},
          {"address", e.address},
          {"join", e.join.empty() ? Json() : Json(e.join)},
          {"trusted", e.join.empty() ? Json() : Json(e.is_trusted)},
          {"other_hosts", e.other_hosts}};
}

Json EventJson::operator()(const PageServed& e) const {
  return {{"event", "page"},
          {"url", e.url},
          {"key", e.key},
          {"others", e.others.empty() ? Json() : Json(address_for_others(e))},
          {"program", program_of(e.program)}};
}

Json EventJson::operator()(const VolunteerJoined& e) const {
  return {{"event", "volunteer_joined"},    {"name", e.name},
          {"address", e.address},           {"threads", e.threads},
          {"memory_bytes", e.memory_bytes}, {"simd", e.simd},
          {"volunteers", e.volunteers}};
}

Json EventJson::operator()(const VolunteerLeft& e) const {
  return {{"event", "volunteer_left"}, {"name", e.name},     {"reason", e.reason},
          {"polite", e.polite},        {"shards", e.shards}, {"volunteers", e.volunteers}};
}

Json EventJson::operator()(const CheckpointSaved& e) const {
  const RoundRecord& record = e.record;
  return {{"event", "checkpoint"},
          {"checkpoint", record.checkpoint},
          {"rounds", e.rounds},
          {"batches", record.batches},
          {"epoch", record.epoch},
          {"epochs", e.epochs},
          {"ends_epoch", e.ends_epoch},
          {"loss", known(record.loss)},
          {"active", tenths(record.active)},
          {"examples_per_second", tenths(record.examples_per_second)},
          {"bytes_down", tenths(record.bytes_down)},
          {"bytes_up", tenths(record.bytes_up)}};
}

Json EventJson::operator()(const Evaluated& e) const {
  Json json = {
      {"event", "evaluated"}, {"checkpoint", e.checkpoint},    {"epoch", e.epoch},
      {"epochs", e.epochs},   {"points", e.evaluation.points}, {"all", e.evaluation.all_points}};
  add_precision(json, e.evaluation.precision);
  json["seconds"] = known(e.seconds);
  return json;
}

Json EventJson::operator()(const Paused& e) const {
  return {{"event", "paused"}, {"reason", e.reason}};
}

Json EventJson::operator()(const RatesCut& e) const {
  return {{"event", "rates_cut"}, {"checkpoint", e.checkpoint}, {"batch", e.batch},
          {"sign", e.sign},       {"value", known(e.value)},    {"before", known(e.before)},
          {"cuts", e.cuts}};
}

Json EventJson::operator()(const Resumed& e) const {
  return {{"event", "resumed"}, {"seconds", e.seconds}};
}

Json EventJson::operator()(const BackedUp& e) const {
  return {{"event", "backup"},
          {"folder", e.folder},
          {"backup", e.backup},
          {"checkpoint", e.checkpoint},
          {"bytes", e.bytes},
          {"seconds", known(e.seconds)},
          {"stall_seconds", known(e.stall_seconds)},
          {"kept", e.kept}};
}

Json EventJson::operator()(const RunStopped& e) const {
  return {{"event", "stopped"},
          {"checkpoint", e.checkpoint},
          {"rounds", e.rounds},
          {"round_finished", e.round_finished},
          {"store", e.store}};
}

Json EventJson::operator()(const RunFinished& e) const {
  Json json = {{"event", "finished"}, {"epochs", e.epochs}};
  // The first eight members and their order are a promise to programs.
  for (const char* const name : {"p_at_1", "p_at_3", "p_at_5", "psp_at_1"}) json[name] = Json();
  json["examples_per_second"] = tenths(e.examples_per_second);
  json["digest"] = e.digest;
  add_precision(json, e.precision);
  json.update({{"evaluated", e.evaluated},
               {"evaluated_all", e.evaluated_all},
               {"checkpoint", e.checkpoint},
               {"seconds", known(e.seconds)},
               {"already", e.already},
               {"ended_early", e.evaluations_since_best > 0},
               {"best_checkpoint", e.best_checkpoint},
               {"best_p_at_1", known(e.best_p_at_1)},
               {"best_store", e.best_store.empty() ? Json() : Json(e.best_store)},
               {"store", e.store},
               {"compared", e.centroids ? e.centroids->examples : 0},
               {"compared_p_at_1", known(e.centroids ? e.centroids->network_p_at_1 : -1)},
               {"centroid_p_at_1", known(e.centroids ? e.centroids->centroid_p_at_1 : -1)},
               {"below_centroid", e.centroids && e.centroids->network_is_below()}});
  return json;
}

Json EventJson::operator()(const RunFailed& e) const {
  return {{"event", "error"},
          {"code", error_name(e.error.code)},
          {"message", e.error.message},
          {"exit", static_cast<int>(e.exit)}};
}

Json EventJson::operator()(const LogLine& e) const {
  return {{"event", "log"}, {"level", log_level_name(e.level)}, {"message", e.message}};
}

std::string event_json(const RunEvent& event) {
  return dump(std::visit(EventJson{}, event));
}

std::string progress_json(const RunProgress& p) {
  Json json = {{"event", "progress"}, {"stage", stage_name(p.stage)}};
  visit_fields(p, [&]<typename T>(const std::string& name, T value) {
    const bool is_rough = std::is_floating_point_v<T> && name != "loss";
    json[name] = is_rough ? tenths(static_cast<double>(value)) : known(value);
  });
  add_precision(json, p.precision);
  json["volunteers"] = p.volunteers;
  json["bytes_down"] = tenths(p.bytes_down);
  json["bytes_up"] = tenths(p.bytes_up);
  json["waiting_for"] = p.waiting_for.empty() ? Json() : Json(p.waiting_for);
  return dump(json);
}

std::string event_shown_json(const EventShown& event, const std::string& id) {
  const Json parsed = Json::parse(event.json, nullptr, false);
  return dump({{"id", id},
               {"wall_seconds", event.wall_seconds},
               {"level", log_level_name(event.level)},
               {"text", event.text},
               {"event", parsed.is_discarded() ? Json::object() : parsed}});
}

}  // namespace gleaner
