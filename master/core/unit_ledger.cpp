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

// ---- Without a hidden layer ---------------------------------------------------------------------

std::uint32_t score_chunks(const CoreConfig& config) {
  return static_cast<std::uint32_t>((config.evaluated_points() + kScoreChunk - 1) / kScoreChunk);
}

std::uint32_t threads_of(const SessionState& session) {
  return std::clamp(session.hello.cores, 1U, 1024U);
}

void UnitLedger::send_round(SessionId id, SessionState& session, const LeaseRef& lease,
                            RoundIndex round, bool is_again) {
  UnitInFlight unit;
  unit.leases = {lease};
  unit.first = run_.plan.round_begin(round);
  unit.batches = static_cast<std::uint32_t>(run_.plan.round_end(round) - unit.first);
  for (std::uint32_t i = 0; i < unit.batches; ++i) {
    unit.examples += run_.plan.examples_in(unit.first + i);
  }
  if (is_again) unit.audit.emplace();
  TrainUnit message;
  message.leases = unit.leases;
  message.batches.push_back(
      {unit.first, std::make_shared<const Bytes>(), {{0}, {}}, run_.plan.rates(unit.first).output});
  send(id, session, std::move(unit), std::move(message));
}

void UnitLedger::send_scoring(SessionId id, SessionState& session, const LeaseRef& lease,
                              RoundIndex checkpoint, bool is_again) {
  for (std::uint32_t chunk = 0; chunk < score_chunks(run_.config); ++chunk) {
    UnitInFlight unit;
    unit.kind = UnitInFlight::Kind::kEvaluate;
    unit.leases = {lease};
    unit.first = run_.plan.round_begin(checkpoint);
    unit.eval_begin = std::uint64_t{chunk} * kScoreChunk;
    unit.examples =
        std::min<std::uint64_t>(kScoreChunk, run_.config.evaluated_points() - unit.eval_begin);
    if (is_again) unit.audit.emplace();
    QuantizedActivations none;
    none.examples = static_cast<std::uint32_t>(unit.examples);
    EvalUnit message;
    message.leases = unit.leases;
    message.top_k = run_.config.top_k;
    message.hidden = std::make_shared<const Bytes>(pack(none));
    message.first = unit.eval_begin;
    send(id, session, std::move(unit), std::move(message));
  }
}

Result<void> UnitLedger::check(const UnitInFlight& unit, const UnitResult& result) {
  const std::size_t entries = std::min<std::size_t>(unit.batches, 2);
  bool fits = result.batches.size() == entries && !result.is_summed;
  for (std::size_t i = 0; fits && i < entries; ++i) {
    const BatchResult& batch = result.batches[i];
    fits = batch.batch == unit.first + i && batch.gradient.empty() && batch.shards.size() == 1 &&
           batch.shards.front().shard == unit.leases.front().shard;
  }
  if (fits) return {};
  return protocol_error("a result that does not fit unit {}", raw(result.unit));
}

void UnitLedger::measure(SessionState& session, const UnitInFlight& unit,
                         std::uint64_t compute_us) const {
  const auto compute = static_cast<double>(std::clamp<std::uint64_t>(compute_us, 1, 1u << 30));
  const bool is_first = session.last_result == Instant{};
  const auto smooth = [&](double& value, double sample) {
    value = is_first ? sample : 0.8 * value + 0.2 * sample;
  };
  smooth(session.compute_us, compute / unit.batches);
  smooth(session.speed, static_cast<double>(unit.examples) * 1e6 / compute * threads_of(session));
  session.last_result = session.last_answer = outbox_.now();
}

}  // namespace gleaner
