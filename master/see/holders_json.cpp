#include <map>
#include <utility>
#include <vector>

#include "master/see/json_values.hpp"
#include "master/see/status_words.hpp"
#include "master/see/view_json.hpp"

namespace gleaner {
namespace {

// A shard's state as a word of a short list.
std::string shard_state(const PageView& view, std::size_t number) {
  const ShardEntry& shard = view.status.shards[number];
  if (shard.state != LeaseState::kReady) return state_name(shard.state);
  if (shard.next_batch < view.status.progress.batch) return "replaying";
  const bool is_committing = number < view.is_committing.size() && view.is_committing[number] != 0;
  return is_committing ? "committing" : "training";
}

// The accounts of this process's life, added up by name.
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

}  // namespace

std::string shards_json(const PageView& view) {
  const RunStatus& s = view.status;
  const BatchIndex batch = s.progress.batch;
  Json shards = Json::array();
  for (std::size_t i = 0; i < s.shards.size(); ++i) {
    const ShardEntry& e = s.shards[i];
    const std::uint64_t lag = batch > e.next_batch ? batch - e.next_batch : 0;
    Json shard = {{"shard", i},
                  {"layer", is_input(s, i) ? "input" : "output"},
                  {"state", shard_state(view, i)},
                  {"holder", e.holder ? Json(printable(s.volunteers[*e.holder].name)) : Json()},
                  {"lag", lag}};
    shard.update(fields_of(e));
    shards.push_back(std::move(shard));
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
    Json one = fields_of(v);
    if (!with_addresses) one["address"] = Json();
    one["state"] = volunteer_state(v, held[i], ready[i]);
    one["shards"] = held[i];
    one["share"] = speed > 0 ? Json(double{v.speed} / speed) : Json();
    here.push_back(std::move(one));
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

}  // namespace gleaner
