// What volunteers say. Everything here is a claim until it has been checked.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "master/core/master_core.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kChunksInFlightMax = 16;

template <typename... Args>
Error protocol_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

// Row numbers and the number of states, against the shard they claim to be of.
template <typename Rows>
bool rows_fit(const ShardMap& map, ShardId shard, const Rows& rows) {
  const std::size_t count = rows.rows.size();
  return rows.states.size() == count && (count == 0 || rows.rows.back() < map.row_count(shard));
}

Result<void> check_rows(const ShardMap& map, ShardId shard, const ShardRows& rows) {
  if (!rows_fit(map, shard, rows) ||
      rows.codes.size() != rows.rows.size() * map.codes_per_row(shard) ||
      rows.values.size() != rows.rows.size() * map.row_width(shard)) {
    return protocol_error("rows that do not fit shard {}", raw(shard));
  }
  return {};
}

Result<void> check_update(const ShardMap& map, ShardId shard, const SparseUpdate& update) {
  const std::size_t count = update.rows.size();
  if (!rows_fit(map, shard, update) || update.scales.size() != count ||
      update.levels.size() != count * map.weights_per_row(shard) ||
      update.biases.size() != (map.is_output(shard) ? count : 0)) {
    return protocol_error("rows that do not fit shard {}", raw(shard));
  }
  return {};
}

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

// Parts hold rows, and those of one follow those of the part before, so that there are no more of
// them than the shard has rows. Only a lone part may be empty.
template <typename Part, typename Rows>
bool follows(const Part& part, const Rows& rows, std::uint64_t rows_from) {
  if (rows.rows.empty()) return part.parts == 1;
  return rows.rows.front() >= rows_from;
}

// A unit of the shard from before batch `end`.
bool has_unit_out(const SessionState& session, ShardId shard, BatchIndex end) {
  return std::any_of(session.units.begin(), session.units.end(), [&](const auto& entry) {
    const UnitInFlight& unit = entry.second;
    return unit.first < end && std::any_of(unit.leases.begin(), unit.leases.end(),
                                           [&](const LeaseRef& l) { return l.shard == shard; });
  });
}

}  // namespace

void MasterCore::on_message(SessionId id, SessionState& session, ChunkRequest& request) {
  ShardLease* lease = leases_.find(request.lease, id);
  if (lease == nullptr) return;  // revoked while the request was on its way
  const std::uint32_t rows = map_.row_count(request.lease.shard);
  const std::uint32_t base_chunks = this->base_chunks(request.lease.shard, lease->base_round);
  const std::size_t chunks =
      base_chunks + (lease->handed_over ? lease->handed_over->parts.size() : 0);
  if (lease->state != LeaseState::kLoading || request.chunk >= chunks ||
      session.chunks_in_flight.size() >= kChunksInFlightMax ||
      session.chunks_in_flight.contains({request.lease.epoch, request.chunk})) {
    refuse(id, ErrorCode::kProtocol,
           fmt::format("chunk {} of shard {} is not to be had", request.chunk,
                       raw(request.lease.shard)),
           false);
    return;
  }
  session.last_progress = now_;
  if (request.chunk >= base_chunks) {
    lease->chunks_sent = std::min(lease->chunks_sent + 1, lease->chunks);
    say(id, ShardChunk{request.lease, request.chunk,
                       lease->handed_over->parts[request.chunk - base_chunks]});
    return;
  }
  session.chunks_in_flight.insert({request.lease.epoch, request.chunk});
  const std::uint32_t per_chunk = rows_per_chunk(request.lease.shard);
  const std::uint32_t begin = request.chunk * per_chunk;
  effects_.emplace_back(
      StorageTask(ReadChunkTask{id, request.lease, request.chunk, lease->base_round, begin,
                                std::min(begin + per_chunk, rows)}));
}

void MasterCore::on_message(SessionId id, SessionState& session, ShardReady& ready) {
  ShardLease* lease = leases_.find(ready.lease, id);
  if (lease == nullptr) return;
  if (lease->state != LeaseState::kLoading) {
    refuse(id, ErrorCode::kProtocol,
           fmt::format("shard {} was ready before", raw(ready.lease.shard)), false);
    return;
  }
  lease->handed_over.reset();
  loading_time_ = now_ - lease->since;
  leases_.set_state(ready.lease.shard, LeaseState::kReady, now_);
  session.last_progress = now_;
}

void MasterCore::on_message(SessionId id, SessionState& session, HandOver& part) {
  ShardLease* lease = leases_.find(part.lease, id);
  if (lease == nullptr) return;
  const std::uint32_t arrived =
      lease->handed_over ? static_cast<std::uint32_t>(lease->handed_over->parts.size()) : 0;
  Result<void> fits = check_rows(map_, part.lease.shard, part.rows);
  // Everything that was asked of the shard comes before it: results, and the commit of a round that
  // is complete.
  const bool is_due =
      lease->state == LeaseState::kReleasing && part.base_round == lease->next_commit &&
      part.next_batch == lease->next_batch && part.next_batch < plan_.round_end(part.base_round) &&
      !has_unit_out(session, part.lease.shard, std::numeric_limits<BatchIndex>::max());
  if (fits.ok() && (!is_due || part.part != arrived || part.part >= part.parts ||
                    !follows(part, part.rows, lease->rows_from))) {
    fits = protocol_error("a hand-over of shard {} that does not fit its lease",
                          raw(part.lease.shard));
  }
  if (!fits) {
    refuse(id, fits.error().code, fits.error().message, false);
    return;
  }
  session.last_progress = now_;
  if (!lease->handed_over) {
    lease->handed_over = std::make_shared<HandedOver>();
    lease->handed_over->base_round = part.base_round;
    lease->handed_over->next_batch = part.next_batch;
  }
  lease->rows_from = part.rows.rows.empty() ? 0 : std::uint64_t{part.rows.rows.back()} + 1;
  lease->handed_over->parts.push_back(std::move(part.rows));
  if (part.part + 1 != part.parts) return;
  lease->held_before = session.name();
  leases_.release(part.lease.shard, now_);
}

Result<void> MasterCore::check_unit_result(const UnitInFlight& unit,
                                           const UnitResult& result) const {
  if (result.batches.size() != unit.batches) {
    return protocol_error("unit {} has {} batches, its result {}", raw(result.unit), unit.batches,
                          result.batches.size());
  }
  for (std::size_t i = 0; i < result.batches.size(); ++i) {
    const BatchResult& batch = result.batches[i];
    const bool fits = batch.batch == unit.first + i && batch.shards.size() == unit.leases.size() &&
                      std::equal(batch.shards.begin(), batch.shards.end(), unit.leases.begin(),
                                 [](const ShardOutcome& outcome, const LeaseRef& lease) {
                                   return outcome.shard == lease.shard;
                                 });
    if (!fits) return protocol_error("a result that does not fit unit {}", raw(result.unit));
  }
  return {};
}

void MasterCore::on_message(SessionId id, SessionState& session, UnitResult& result) {
  const auto found = session.units.find(result.unit);
  if (found == session.units.end() || found->second.kind != UnitInFlight::Kind::kTrain) {
    refuse(id, ErrorCode::kProtocol, fmt::format("unit {} is not out", raw(result.unit)), false);
    return;
  }
  const UnitInFlight unit = found->second;
  Result<void> added = check_unit_result(unit, result);
  for (std::size_t i = 0; added.ok() && i < result.batches.size(); ++i) {
    const BatchResult& batch = result.batches[i];
    added = pipeline_.add_result(batch.batch, batch.shards, batch.gradient, unit.wants_gradient);
    round_unit_examples_ += pipeline_.at(batch.batch).examples;
  }
  if (!added) {
    session.units.erase(found);
    ++account(session).units_refused;
    if (added.error().code == ErrorCode::kFault) {
      ++account(session).faults;
      remark(Severity::kError, "fault",
             fmt::format("{}: {}", session.name(), added.error().message));
    }
    refuse(id, added.error().code, added.error().message, false);
    return;
  }
  session.units.erase(result.unit);
  session.batches_in_flight -= unit.batches;
  session.last_progress = now_;
  measure(session, unit, result);
}

void MasterCore::measure(SessionState& session, const UnitInFlight& unit,
                         const UnitResult& result) {
  std::uint64_t examples = 0;
  for (const BatchResult& batch : result.batches) examples += pipeline_.at(batch.batch).examples;
  AccountRecord& record = account(session);
  ++record.units;
  record.examples += examples * unit.leases.size();
  const auto smooth = [&](double& value, double sample) {
    value = session.last_result == Instant{} ? sample : 0.97 * value + 0.03 * sample;
  };
  const auto compute_us = static_cast<double>(std::min<std::uint64_t>(result.compute_us, 1u << 30));
  const Micros round_trip(std::max<std::int64_t>(session.round_trip_us, 0));
  const Micros service = now_ - std::max(unit.sent + round_trip, session.last_answer);
  const double batches = unit.batches;
  smooth(session.transit_us,
         std::max(0.0, static_cast<double>(service.count()) - compute_us) / batches);
  smooth(session.compute_us, compute_us / batches);
  if (compute_us > 0) {
    smooth(session.speed, static_cast<double>(examples * unit.leases.size()) * 1e6 / compute_us);
  }
  session.last_result = session.last_answer = now_;
}

void MasterCore::on_message(SessionId id, SessionState& session, ShardCommit& commit) {
  ShardLease* lease = leases_.find(commit.lease, id);
  if (lease == nullptr) {
    say(id, CommitCredit{});
    return;
  }
  const ShardId shard = commit.lease.shard;
  Result<void> fits = check_update(map_, shard, commit.update);
  const bool is_next = commit.round == lease->next_commit && commit.part == lease->parts_arrived &&
                       commit.part < commit.parts && commit.round < plan_.round_count() &&
                       (commit.part == 0 || commit.parts == lease->parts) &&
                       follows(commit, commit.update, lease->rows_from);
  if (fits.ok() && (!is_next || lease->next_batch < plan_.round_end(commit.round))) {
    fits = protocol_error("a commit of shard {} for round {} that is not due", raw(shard),
                          commit.round);
  }
  // Results come before the commit they lead to; otherwise the round could be folded while the
  // batches of it are still awaited.
  if (fits.ok() && has_unit_out(session, shard, plan_.round_end(commit.round))) {
    fits =
        protocol_error("shard {} committed round {} before its results", raw(shard), commit.round);
  }
  if (!fits) {
    refuse(id, fits.error().code, fits.error().message, false);
    return;
  }
  session.last_progress = now_;
  lease->parts = commit.parts;
  ++lease->parts_arrived;
  lease->rows_from = commit.update.rows.empty() ? 0 : std::uint64_t{commit.update.rows.back()} + 1;
  if (lease->parts_arrived == commit.parts) {
    lease->parts_arrived = 0;
    lease->rows_from = 0;
    ++lease->next_commit;
  }
  commits_.expect(commit.round, shard, commit.parts);
  effects_.emplace_back(
      StorageTask(StageTask{id, shard, commit.round, commit.part, commit.parts,
                            std::make_shared<const SparseUpdate>(std::move(commit.update))}));
}

void MasterCore::on_message(SessionId id, SessionState& session, EvalResult& result) {
  const auto found = session.units.find(result.unit);
  if (found == session.units.end() || found->second.kind != UnitInFlight::Kind::kEvaluate) {
    refuse(id, ErrorCode::kProtocol, fmt::format("unit {} is not out", raw(result.unit)), false);
    return;
  }
  const UnitInFlight unit = found->second;
  std::uint32_t neurons = 0;
  for (const LeaseRef& lease : unit.leases) neurons += map_.neurons(lease.shard).size();
  const std::uint64_t examples = evaluation_ ? evaluation_->examples_in(unit.eval_begin) : 0;
  const bool fits = result.top_k == std::min(config_.top_k, neurons) &&
                    result.best.size() == examples * result.top_k &&
                    holds_only(result.best, result.top_k, map_, unit.leases);
  if (!fits) {
    unassign(unit);
    session.units.erase(found);
    ++account(session).units_refused;
    refuse(id, ErrorCode::kProtocol,
           fmt::format("a result that does not fit unit {}", raw(result.unit)), false);
    return;
  }
  std::vector<ShardId> shards;
  for (const LeaseRef& lease : unit.leases) shards.push_back(lease.shard);
  evaluation_->scored(unit.eval_begin, shards, std::move(result.best));
  session.units.erase(found);
  ++account(session).units;
  session.last_progress = now_;
}

void MasterCore::on_message(SessionId id, SessionState&, const Message& other) {
  refuse(id, ErrorCode::kProtocol,
         fmt::format("{} is for volunteers to receive, not to send", message_name(other)), false);
}

}  // namespace gleaner
