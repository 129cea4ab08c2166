#include "master/core/unit_ledger.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/work/quantized_activations.hpp"

namespace gleaner {
namespace {

// Every list holds different neurons of the unit's shards.
bool holds_only(const std::vector<ScoredNeuron>& best, std::size_t list, const ShardMap& map,
                const std::vector<LeaseRef>& shards) {
  std::vector<std::uint32_t> neurons;
  for (std::size_t begin = 0; begin < best.size(); begin += list) {
    neurons.clear();
    for (std::size_t i = begin; i < begin + list; ++i) neurons.push_back(best[i].neuron);
    std::sort(neurons.begin(), neurons.end());
    if (std::adjacent_find(neurons.begin(), neurons.end()) != neurons.end()) return false;
    auto shard = shards.begin();  // both ascend
    for (const std::uint32_t neuron : neurons) {
      while (shard != shards.end() && map.neurons(shard->shard).end <= neuron) ++shard;
      if (shard == shards.end() || neuron < map.neurons(shard->shard).begin) return false;
    }
  }
  return true;
}

}  // namespace

void UnitLedger::send(SessionId id, SessionState& session, UnitInFlight unit, Message message) {
  const UnitId unit_id{++last_unit_};
  if (auto* train = std::get_if<TrainUnit>(&message)) train->unit = unit_id;
  if (auto* evaluate = std::get_if<EvalUnit>(&message)) evaluate->unit = unit_id;
  if (auto* input = std::get_if<InputUnit>(&message)) input->unit = unit_id;
  session.begin_unit(outbox_.now());
  unit.sent = outbox_.now();
  ++sessions_.account(session).units_issued;
  session.units.emplace(unit_id, std::move(unit));
  outbox_.send(id, std::move(message));
}

Result<UnitInFlight> UnitLedger::take(SessionState& session, UnitId id, UnitInFlight::Kind kind) {
  const auto found = session.units.find(id);
  if (found == session.units.end() || found->second.kind != kind) {
    return protocol_error("unit {} is not out", raw(id));
  }
  UnitInFlight unit = std::move(found->second);
  session.end_unit(found, outbox_.now());
  return unit;
}

void UnitLedger::cancel(SessionState& session, const LeaseRef& lease) {
  for (auto unit = session.units.begin(); unit != session.units.end();) {
    if (!std::ranges::count(unit->second.leases, lease)) {
      ++unit;
      continue;
    }
    ++sessions_.account(session).units_expired;
    session.end_unit(unit++, outbox_.now());
  }
}

bool UnitLedger::fits(const UnitInFlight& unit, const EvalResult& result) const {
  std::uint32_t neurons = 0;
  for (const LeaseRef& lease : unit.leases) neurons += run_.map.neurons(lease.shard).size();
  return result.top_k == std::min(run_.config.top_k, neurons) &&
         result.best.size() == unit.examples * result.top_k &&
         holds_only(result.best, result.top_k, run_.map, unit.leases);
}

}  // namespace gleaner
