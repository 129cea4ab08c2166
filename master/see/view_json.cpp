#include "master/see/view_json.hpp"

#include <qrencode.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "common/access/standing.hpp"
#include "common/console/terminal.hpp"
#include "common/model/precision.hpp"
#include "master/see/progress_text.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {

std::vector<std::string> qr_rows(std::string_view text) {
  const std::string copy(text);
  const std::unique_ptr<QRcode, decltype(&QRcode_free)> code(
      QRcode_encodeString8bit(copy.c_str(), 0, QR_ECLEVEL_M), &QRcode_free);
  std::vector<std::string> rows;
  if (!code) return rows;
  const auto width = static_cast<std::size_t>(code->width);
  for (std::size_t y = 0; y < width; ++y) {
    std::string& row = rows.emplace_back(width, '0');
    for (std::size_t x = 0; x < width; ++x) {
      if ((code->data[y * width + x] & 1) != 0) row[x] = '1';
    }
  }
  return rows;
}

namespace {

using Json = nlohmann::ordered_json;

// A figure that is not known is null, so that nobody takes -1 for a measurement.
Json known(double value) {
  return value < 0 || !std::isfinite(value) ? Json() : Json(value);
}

Json known(std::unsigned_integral auto value) {
  return value;
}

// All figures, as members that `object` gets or keeps in their place.
void add_precision(Json& object, const Precision& precision) {
  visit_precision(precision, [&](const char* name, double value) { object[name] = known(value); });
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(printable(text));
}

double seconds(std::uint64_t us) {
  return static_cast<double>(us) / 1e6;
}

// Names come from peers; a broken one must not stop the program.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json progress_of(const RunProgress& progress) {
  Json json = Json::object();
  visit_fields(progress, [&](const char* name, auto value) { json[name] = known(value); });
  return json;
}

Json precision_of(const Precision& precision) {
  Json json;
  add_precision(json, precision);
  return json;
}

Json program_of(const std::optional<PageServed::Program>& program) {
  if (!program) return {};
  return {{"url", program->url}, {"machine", program->machine}, {"sha256", program->sha256}};
}

Json values_of(const RecipeChosen& recipe) {
  Json values = Json::array();
  for (const RecipeChosen::Value& v : recipe.values) {
    values.push_back({{"key", v.key}, {"value", v.value}, {"why", v.why}});
  }
  return values;
}

Json times_of(const PageView& view) {
  Json uses = Json::array();
  for (std::size_t i = 0; i < kTimeUses; ++i) {
    const auto use = static_cast<TimeUse>(i);
    uses.push_back({{"use", time_use_name(use)},
                    {"text", time_use_text(use)},
                    {"seconds", view.time_all[i]},
                    {"recent_seconds", view.time_recent[i]}});
  }
  return uses;
}

Json why_of(const RunStatus& status) {
  const auto sentences = why(status, "run");
  return sentences ? Json(*sentences) : Json::array();
}

// A shard's state in one word of a short list.
std::string shard_state(const PageView& view, std::size_t number) {
  const ShardEntry& shard = view.status.shards[number];
  if (shard.state != LeaseState::kReady) return state_name(shard.state);
  if (shard.next_batch < view.status.progress.batch) return "replaying";
  const bool is_committing = number < view.is_committing.size() && view.is_committing[number] != 0;
  return is_committing ? "committing" : "training";
}

// The accounts of this process's life, those of one name added up.
std::map<std::string, AccountRecord> contributions_of(const PageView& view) {
  std::map<std::string, AccountRecord> all;
  for (const AccountRecord& account : view.accounts) all[printable(account.name)] += account;
  return all;
}

Json contributions_json(const PageView& view, const RunFacts& facts, const CreditTally& credit) {
  Json contributions = Json::array();
  const bool audits = facts.audit != "off";
  for (const auto& [name, c] : contributions_of(view)) {
    const CheckedWork checked = credit.of(name);
    contributions.push_back({{"name", name},
                             {"credit", audits ? checked.credit() : c.examples},
                             {"examples", c.examples},
                             {"confirmed", checked.confirmed},
                             {"trusted", checked.trusted},
                             {"unaudited", checked.unaudited},
                             {"audited", checked.audited},
                             {"units", c.units},
                             {"units_expired", c.units_expired},
                             {"bytes_down", c.down.all},
                             {"bytes_up", c.up.all},
                             {"commits", c.commits},
                             {"faults", c.faults}});
  }
  return contributions;
}

Json history_of(const HistorySeries& history, RoundIndex from, RoundIndex to, std::size_t pieces) {
  const std::vector<HistorySeries::Piece> all = history.pieces(from, to, pieces);
  const auto& records = history.records();
  Json checkpoints = Json::array(), batches = Json::array(), epochs = Json::array(),
       walls = Json::array();
  for (const HistorySeries::Piece& piece : all) {
    checkpoints.push_back(piece.last.checkpoint);
    batches.push_back(piece.last.batches);
    epochs.push_back(piece.last.epoch);
    walls.push_back(piece.last.wall_seconds);
  }
  Json series = Json::object();
  for (std::size_t c = 0; c < HistorySeries::kColumns.size(); ++c) {
    Json last = Json::array(), low = Json::array(), high = Json::array();
    for (const HistorySeries::Piece& piece : all) {
      last.push_back(known(piece.last.values[c]));
      low.push_back(known(piece.low[c]));
      high.push_back(known(piece.high[c]));
    }
    series[std::string(HistorySeries::kColumns[c])] = {
        {"last", std::move(last)}, {"low", std::move(low)}, {"high", std::move(high)}};
  }
  return {{"version", history.version()},
          {"first", records.empty() ? 0 : records.front().checkpoint},
          {"last", records.empty() ? 0 : records.back().checkpoint},
          {"checkpoint", std::move(checkpoints)},
          {"batches", std::move(batches)},
          {"epoch", std::move(epochs)},
          {"wall_seconds", std::move(walls)},
          {"series", std::move(series)}};
}

}  // namespace

std::string run_json(const PageView& view, const RunFacts& facts, const HistorySeries& history) {
  const RunStatus& s = view.status;
  const RunProgress& progress = s.progress;
  const std::int64_t age = view.wall_seconds - view.checkpoint_wall_seconds;
  const Json body = {
      {"headline", headline(s)},
      {"why", why_of(s)},
      {"run", s.run},
      {"life", s.life},
      {"build", s.build},
      {"store", printable(facts.store)},
      {"version", view.version},
      {"wall_seconds", view.wall_seconds},
      {"stage", stage_name(progress.stage)},
      {"progress", progress_of(progress)},
      {"precision", precision_of(progress.precision)},
      {"wait",
       {{"waits_for", text_or_null(s.waits_for)},
        {"owner", owner_name(s.wait_owner)},
        {"seconds", seconds(s.waits_us)},
        {"is_held_up", s.is_held_up}}},
      {"checkpoint",
       {{"number", progress.round},
        {"age_seconds",
         view.checkpoint_wall_seconds == 0 ? Json() : Json(std::max<std::int64_t>(0, age))}}},
      {"traffic",
       {{"unit_bytes_down", progress.unit_bytes_down},
        {"unit_bytes_up", progress.unit_bytes_up},
        {"bytes_per_second_down", known(view.bytes_per_second_down)},
        {"bytes_per_second_up", known(view.bytes_per_second_up)}}},
      {"disk", {{"store_bytes", s.store_bytes}, {"free_bytes", s.free_bytes}}},
      {"examples", progress.examples},
      {"volunteers_here", progress.volunteers},
      {"shards", s.shards.size()},
      {"time", times_of(view)},
      {"history_version", history.version()},
      {"history_records", history.records().size()},
      {"join", text_or_null(facts.join)},
      {"program", program_of(facts.program)}};
  return dump(body);
}

std::string shards_json(const PageView& view) {
  const RunStatus& s = view.status;
  const BatchIndex batch = s.progress.batch;
  Json shards = Json::array();
  for (std::size_t i = 0; i < s.shards.size(); ++i) {
    const ShardEntry& e = s.shards[i];
    const std::uint64_t lag = batch > e.next_batch ? batch - e.next_batch : 0;
    shards.push_back(
        {{"shard", i},
         {"layer", is_input(s, i) ? "input" : "output"},
         {"state", shard_state(view, i)},
         {"holder", e.holder ? Json(printable(s.volunteers[*e.holder].name)) : Json()},
         {"since_seconds", seconds(e.since_us)},
         {"version", e.committed},
         {"next_batch", e.next_batch},
         {"lag", lag},
         {"loaded", e.chunks == 0 ? Json() : Json(double(e.chunks_sent) / double(e.chunks))},
         {"held_before", text_or_null(e.held_before)},
         {"moved_why", text_or_null(e.moved_why)}});
  }
  return dump({{"version", view.version}, {"batch", batch}, {"shards", std::move(shards)}});
}

std::string volunteers_json(const PageView& view, const RunFacts& facts, const CreditTally& credit,
                            bool with_addresses) {
  const RunStatus& s = view.status;
  std::vector<std::uint32_t> held(s.volunteers.size());
  std::vector<std::uint32_t> ready(s.volunteers.size());
  for (const ShardEntry& shard : s.shards) {
    if (!shard.holder) continue;
    ++held[*shard.holder];
    if (shard.state == LeaseState::kReady) ++ready[*shard.holder];
  }
  double speed = 0;
  for (const VolunteerEntry& v : s.volunteers) speed += double{v.speed};
  Json here = Json::array();
  for (std::size_t i = 0; i < s.volunteers.size(); ++i) {
    const VolunteerEntry& v = s.volunteers[i];
    here.push_back(
        {{"name", printable(v.name)},
         {"address", with_addresses ? text_or_null(v.peer) : Json()},
         {"is_local", v.is_local},
         {"state", volunteer_state(v, held[i], ready[i])},
         {"threads", v.cores},
         {"shards", held[i]},
         {"speed", double{v.speed}},
         {"share", speed > 0 ? Json(double{v.speed} / speed) : Json()},
         {"round_trip_seconds", v.round_trip_us < 0 ? Json() : Json(double(v.round_trip_us) / 1e6)},
         {"here_seconds", seconds(v.here_us)},
         {"silent_seconds", seconds(v.silent_us)},
         {"units_out", v.units_out},
         {"owes_seconds", v.owes ? Json(seconds(v.owes_us)) : Json()},
         {"no_shards", text_or_null(v.no_shards)}});
  }
  Json gone = Json::array();
  for (const DepartureEntry& d : s.gone) {
    gone.push_back({{"name", printable(d.name)},
                    {"reason", printable(d.reason)},
                    {"ago_seconds", seconds(d.ago_us)},
                    {"shards", d.shards}});
  }
  return dump({{"version", view.version},
               {"audit", facts.audit},
               {"volunteers_here", s.progress.volunteers},
               {"here", std::move(here)},
               {"gone", std::move(gone)},
               {"contributions", contributions_json(view, facts, credit)}});
}

std::string configuration_json(const RunFacts& facts) {
  Json settings = Json::array();
  for (const SettingShown& s : facts.settings) {
    settings.push_back({{"key", s.key},
                        {"value", printable(s.value)},
                        {"unit", s.unit},
                        {"doc", s.doc},
                        {"is_default", s.is_default}});
  }
  Json data = Json::object();
  visit_data_fields(facts, [&](const char* name, auto value) { data[name] = value; });
  return dump({{"data", std::move(data)},
               {"settings", std::move(settings)},
               {"recipe", {{"name", facts.recipe.recipe}, {"values", values_of(facts.recipe)}}}});
}

std::string join_json(const Listening& listening) {
  const std::string& line = listening.join;
  // A camera's reader takes an address, and flags are none of it.
  const std::string address = line.substr(0, line.find(' '));
  const std::string others = command_for_others(listening);
  return dump({{"line", address},
               {"command", "gleaner-volunteer " + line},
               {"command_for_others", text_or_null(others)},
               {"qr", qr_rows(address)}});
}

std::string receipts_json(const ReceiptLog& log, RoundIndex round, std::size_t first,
                          std::size_t count, const PageView* people) {
  std::map<std::string_view, std::uint64_t> verdicts;
  for (const std::string_view name : kWorkVerdictNames) verdicts[name] = 0;
  Json receipts = Json::array();
  const LoggedReceipts* const found = log.find(round);
  const std::vector<Receipt> none;
  const std::vector<Receipt>& all = found != nullptr ? found->receipts->shards : none;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Receipt& receipt = all[i];
    ++verdicts[name_of(receipt.verdict)];
    if (people == nullptr || i < first || i - first >= count) continue;
    const bool has_auditor = receipt.auditor != KeyId{};
    receipts.push_back(
        {{"shard", raw(receipt.shard)},
         {"holder", printable(receipt.holder_name)},
         {"holder_key", receipt.holder == KeyId{} ? Json() : Json(to_text(receipt.holder))},
         {"auditor", has_auditor ? Json(printable(receipt.auditor_name)) : Json()},
         {"auditor_key", has_auditor ? Json(to_text(receipt.auditor)) : Json()},
         {"verdict", name_of(receipt.verdict)}});
  }
  Json banned = people == nullptr ? Json() : Json::array();
  for (const BanShown& ban : people == nullptr ? std::vector<BanShown>() : people->banned) {
    banned.push_back(
        {{"key", ban.key}, {"name", printable(ban.name)}, {"reason", printable(ban.reason)}});
  }
  const auto& rounds = log.rounds();
  return dump({{"checked_up_to", log.checked_up_to()},
               {"first_round", rounds.empty() ? Json() : Json(rounds.front().round)},
               {"last_round", rounds.empty() ? Json() : Json(rounds.back().round)},
               {"round", round},
               {"shards", all.size()},
               {"verdicts", verdicts},
               {"receipts", std::move(receipts)},
               {"banned", std::move(banned)}});
}

std::string event_shown_json(const EventShown& event, const std::string& id) {
  const Json parsed = Json::parse(event.json, nullptr, false);
  return dump({{"id", id},
               {"wall_seconds", event.wall_seconds},
               {"level", log_level_name(event.level)},
               {"text", event.text},
               {"event", parsed.is_discarded() ? Json::object() : parsed}});
}

std::string history_json(const HistorySeries& history, RoundIndex from, RoundIndex to,
                         std::size_t pieces) {
  return dump(history_of(history, from, to, pieces));
}

std::string histories_json(const std::vector<RunHistory>& runs, std::size_t pieces) {
  Json all = Json::array();
  for (const RunHistory& run : runs) {
    Json one = {{"name", printable(run.name)}, {"batches_per_epoch", run.batches_per_epoch}};
    one.update(history_of(run.series, 0, std::numeric_limits<RoundIndex>::max(), pieces));
    all.push_back(std::move(one));
  }
  return dump({{"runs", std::move(all)}});
}

namespace {

// For measurements of which more digits say nothing.
Json tenths(double value) {
  return known(value < 0 ? value : std::round(value * 10) / 10);
}

struct EventJson {
  Json operator()(const RecipeChosen& e) const {
    return {{"event", "recipe"}, {"recipe", e.recipe}, {"values", values_of(e)}};
  }

  Json operator()(const RunStarted& e) const {
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

  Json operator()(const Listening& e) const {
    return {{"event", "listening"},
            {"address", e.address},
            {"join", e.join.empty() ? Json() : Json(e.join)},
            {"trusted", e.join.empty() ? Json() : Json(e.is_trusted)},
            {"other_hosts", e.other_hosts}};
  }

  Json operator()(const PageServed& e) const {
    return {{"event", "page"},
            {"url", e.url},
            {"key", e.key},
            {"others", e.others.empty() ? Json() : Json(address_for_others(e))},
            {"program", program_of(e.program)}};
  }

  Json operator()(const VolunteerJoined& e) const {
    return {{"event", "volunteer_joined"},    {"name", e.name},
            {"address", e.address},           {"threads", e.threads},
            {"memory_bytes", e.memory_bytes}, {"simd", e.simd},
            {"volunteers", e.volunteers}};
  }

  Json operator()(const VolunteerLeft& e) const {
    return {{"event", "volunteer_left"}, {"name", e.name},     {"reason", e.reason},
            {"polite", e.polite},        {"shards", e.shards}, {"volunteers", e.volunteers}};
  }

  Json operator()(const CheckpointSaved& e) const {
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

  Json operator()(const Evaluated& e) const {
    Json json = {
        {"event", "evaluated"}, {"checkpoint", e.checkpoint},    {"epoch", e.epoch},
        {"epochs", e.epochs},   {"points", e.evaluation.points}, {"all", e.evaluation.all_points}};
    add_precision(json, e.evaluation.precision);
    json["seconds"] = known(e.seconds);
    return json;
  }

  Json operator()(const Paused& e) const { return {{"event", "paused"}, {"reason", e.reason}}; }

  Json operator()(const RatesCut& e) const {
    return {{"event", "rates_cut"}, {"checkpoint", e.checkpoint}, {"batch", e.batch},
            {"sign", e.sign},       {"value", known(e.value)},    {"before", known(e.before)},
            {"cuts", e.cuts}};
  }

  Json operator()(const Resumed& e) const { return {{"event", "resumed"}, {"seconds", e.seconds}}; }

  Json operator()(const BackedUp& e) const {
    return {{"event", "backup"},
            {"folder", e.folder},
            {"backup", e.backup},
            {"checkpoint", e.checkpoint},
            {"bytes", e.bytes},
            {"seconds", known(e.seconds)},
            {"stall_seconds", known(e.stall_seconds)},
            {"kept", e.kept}};
  }

  Json operator()(const RunStopped& e) const {
    return {{"event", "stopped"},
            {"checkpoint", e.checkpoint},
            {"rounds", e.rounds},
            {"round_finished", e.round_finished},
            {"store", e.store}};
  }

  Json operator()(const RunFinished& e) const {
    Json json = {{"event", "finished"}, {"epochs", e.epochs}};
    // The first eight members are a promise to programs, in this order.
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

  Json operator()(const RunFailed& e) const {
    return {{"event", "error"},
            {"code", error_name(e.error.code)},
            {"message", e.error.message},
            {"exit", static_cast<int>(e.exit)}};
  }

  Json operator()(const LogLine& e) const {
    return {{"event", "log"}, {"level", log_level_name(e.level)}, {"message", e.message}};
  }
};

}  // namespace

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

}  // namespace gleaner
