// Moves of shards, and reasons for which a volunteer gets none.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/order_statistics.hpp"
#include "common/text.hpp"
#include "master/core/placement.hpp"

namespace gleaner {
namespace {

// A volunteer keeps the others waiting if its link alone takes this multiple of the time that the
// others take for a unit in all.
constexpr double kLinkTimesMax = 3;

// The speed that is expected of a volunteer: examples x shards per second, or another common unit.
// A volunteer that has not trained yet claims a speed that it measured itself, in another unit. The
// volunteers that have trained have both figures, and their ratio translates the claim.
double expected_speed(const SessionState& session, double claim, double trained, double claimed) {
  if (session.speed > 0) return session.speed;
  return claimed > 0 ? claim * trained / claimed : claim;
}

}  // namespace

Placement::Speeds Placement::speeds() const {
  Speeds sum;
  for (const auto& [id, session] : sessions_.all()) {
    if (session.phase != SessionPhase::kActive) continue;
    sum.lowest = std::min(sum.lowest, double{session.hello.speed});
    if (session.speed <= 0) continue;
    sum.trained += session.speed;
    sum.claimed += double{session.hello.speed};
  }
  return sum;
}

std::uint32_t Placement::capacity(SessionId id, const SessionState& session, Layer layer) const {
  const bool is_output = layer == Layer::kOutput;
  const std::uint64_t bytes = is_output ? run_.config.shard_bytes : run_.config.input_shard_bytes;
  if (bytes == 0) return shards_in(layer);
  const std::uint64_t memory = session.hello.memory_bytes;
  const std::uint64_t other = bytes_at(id) - bytes * count_held_by(id, layer);
  const std::uint64_t free = memory - std::min(memory, other);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(shards_in(layer), free / bytes));
}

std::uint32_t Placement::limit(const SessionState& session) const {
  const std::uint32_t shards = shards_in(Layer::kOutput);
  return sessions_.account(session).commits == 0 ? 1 : (shards + 2) / 3;
}

std::uint64_t Placement::bytes_at(SessionId id) const {
  const std::uint64_t outputs = count_held_by(id, Layer::kOutput) + shadows_.count_held_by(id);
  return run_.config.holder_bytes + outputs * run_.config.shard_bytes +
         count_held_by(id, Layer::kInput) * run_.config.input_shard_bytes;
}

std::vector<Holder> Placement::holders(Layer layer) const {
  std::vector<Holder> holders;
  const Speeds sum = speeds();
  for (const auto& [id, session] : sessions_.all()) {
    if (session.phase != SessionPhase::kActive || session.awaits_offer || session.is_on_trial ||
        session.is_referee()) {
      continue;
    }
    // Nobody audits the work on input shards.
    if (layer == Layer::kInput && sessions_.is_audited(session)) continue;
    Holder holder;
    holder.session = id;
    // A stranger may claim anything: until it has been measured it counts as the slowest.
    const double claim = sessions_.is_audited(session) ? sum.lowest : double{session.hello.speed};
    holder.speed = expected_speed(session, claim, sum.trained, sum.claimed);
    holder.shards = count_held_by(id, layer);
    holder.capacity = capacity(id, session, layer);
    if (sessions_.is_audited(session)) holder.limit = limit(session);
    // A volunteer that missed two heartbeats may be dead: it keeps its shards and gets no more. A
    // paused volunteer gets no more either.
    if (is_quiet(session) || session.is_paused()) {
      holder.capacity = std::min(holder.capacity, holder.shards);
    }
    holders.push_back(holder);
  }
  prefer_reliable(holders, layer);
  return holders;
}

Placement::Reliance Placement::reliance_on(const SessionState& session) const {
  if (sessions_.is_quarantined(session)) return Reliance::kQuarantined;
  return sessions_.is_newcomer(session) ? Reliance::kNewcomer : Reliance::kProven;
}

void Placement::prefer_reliable(std::vector<Holder>& holders, Layer layer) const {
  std::uint64_t room = 0;
  for (const Reliance reliance : {Reliance::kProven, Reliance::kNewcomer, Reliance::kQuarantined}) {
    const bool is_enough = room >= shards_in(layer);
    for (Holder& holder : holders) {
      if (reliance_on(sessions_.at(holder.session)) != reliance) continue;
      if (!is_enough) {
        room += holder.capacity;
      } else if (reliance == Reliance::kNewcomer) {
        holder.capacity = std::min(holder.capacity, holder.shards);
      } else {
        holder.capacity = 0;
      }
    }
  }
}

bool Placement::can_do_without(SessionId id, Layer layer) const {
  return std::ranges::none_of(holders(layer), [&](const Holder& holder) {
    return holder.session == id && holder.capacity > 0;
  });
}

void Placement::weigh_balance() {
  notice_quarantined();
  const std::vector<Holder> present = holders(Layer::kOutput);
  const bool is_off =
      is_unbalanced(present, run_.map.output_shards(), run_.config.balance_hysteresis);
  unbalanced_rounds_ = is_off ? unbalanced_rounds_ + 1 : 0;
  explain_shares(present);
}

void Placement::notice_quarantined() {
  // A unit's bytes do not depend on the number of shards. A volunteer whose link keeps all others
  // waiting is therefore to hold none.
  std::vector<std::pair<SessionId, SessionState*>> holding;
  std::vector<double> times;
  for (auto& [id, session] : sessions_.all()) {
    if (session.has_unit_time() && !sessions_.is_quarantined(session) &&
        count_held_by(id, Layer::kOutput) > 0) {
      holding.emplace_back(id, &session);
      times.push_back(session.unit_time_us());
    }
  }
  const Medians all(std::move(times));
  for (const auto& [id, session] : holding) {
    const std::optional<double> others = all.without(session->unit_time_us());
    if (!others) return;
    const double typical_us = *others;
    const bool is_late = session->transit_us > kLinkTimesMax * typical_us;
    session->late_rounds = is_late ? session->late_rounds + 1 : 0;
    if (session->late_rounds < run_.config.unbalanced_rounds) continue;
    session->late_rounds = 0;
    session->quarantined_until = outbox_.now() + run_.config.forget_slowness;
    if (!can_do_without(id, Layer::kOutput) || !can_do_without(id, Layer::kInput)) {
      session->quarantined_until = {};
      continue;
    }
    sessions_.quarantine(*session);
    has_newcomer_ = true;
    session->no_shards = fmt::format(
        "its link keeps all waiting: a unit is {:.0f} ms on its way, others are done within "
        "{:.0f} ms",
        session->transit_us / 1e3, typical_us / 1e3);
    outbox_.log(LogLevel::kInfo, "no_shards",
                fmt::format("{} gets no shards: {}", session->name(), session->no_shards));
    return;  // one at a time: without it the others may be in time
  }
}

void Placement::explain_shares(std::span<const Holder> holders) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, run_.map.output_shards());
  double total = 0;
  for (const Holder& holder : holders) total += holder.speed;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    SessionState& session = sessions_.at(holders[i].session);
    if (sessions_.is_quarantined(session)) continue;
    if (shares[i] > 0 || leases_.count_held_by(holders[i].session) > 0) {
      session.no_shards.clear();
      continue;
    }
    if (!session.no_shards.empty() || session.is_paused()) continue;
    if (holders[i].capacity == 0 && sessions_.is_newcomer(session)) {
      session.no_shards = "it is new, and first does a unit again whose answer is known";
    } else if (holders[i].capacity == 0) {
      session.no_shards = "its memory is too small for a shard";
    } else {
      session.no_shards = fmt::format(
          "others are done sooner: it does {:.1f} % of what all do together, and one of {} shards "
          "is {:.1f} %",
          100 * holders[i].speed / std::max(total, 1e-9), run_.map.output_shards(),
          100.0 / run_.map.output_shards());
    }
    outbox_.log(LogLevel::kInfo, "no_shards",
                fmt::format("{} gets no shards: {}", session.name(), session.no_shards));
  }
}

bool Placement::is_between_rounds() const {
  const BatchIndex frontier = pipeline_.frontier();
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    const ShardLease& lease = leases_.at(ShardId{s});
    if (lease.state != LeaseState::kFree && lease.next_batch != frontier) return false;
  }
  return true;
}

bool Placement::is_move_worth_while(const std::vector<Holder>& candidates) const {
  if (!last_loss_) return true;
  // Expect the next volunteer to vanish after as much time as has passed since the last one
  // vanished. By then a move must have saved the time that it takes. If volunteers vanish faster,
  // newcomers get their shards.
  const double calm_us = static_cast<double>((outbox_.now() - *last_loss_).count());
  return calm_us * gain_of_fair_shares(candidates, run_.map.output_shards()) >=
         static_cast<double>(loading_time_.count());
}

void Placement::rebalance() {
  // Only between two rounds: all of a shard is in its commit then, and a hand-over carries nothing.
  if (!run_.plan.is_round_end(pipeline_.frontier()) || stays_at_ == pipeline_.frontier()) return;
  // One wave of moves at a time: shards in transit will change the balance.
  if (!leases_.in_state(LeaseState::kReleasing).empty() ||
      !leases_.in_state(LeaseState::kLoading).empty() ||
      !leases_.in_state(LeaseState::kFree).empty()) {
    return;
  }
  if (!is_between_rounds()) return;
  const std::vector<Holder> candidates = holders(Layer::kOutput);
  const bool must_move = is_beyond_limits(candidates, run_.map.output_shards()) ||
                         std::any_of(candidates.begin(), candidates.end(),
                                     [](const Holder& h) { return h.shards > h.capacity; });
  if (!must_move && !is_move_worth_while(candidates)) {
    stays_at_ = pipeline_.frontier();
    return;
  }
  const bool is_for_newcomer = has_newcomer_;
  has_newcomer_ = false;
  unbalanced_rounds_ = 0;
  move_shards(Layer::kOutput, candidates,
              is_for_newcomer ? "somebody has come who is to have a fair share"
                              : "with other shares all are done sooner");
  // A link slows the input layer down, and another allocation would not help.
  if (input_ && is_for_newcomer) {
    move_shards(Layer::kInput, holders(Layer::kInput),
                "somebody has come who is to have a fair share");
  }
}

void Placement::move_shards(Layer layer, const std::vector<Holder>& candidates, const char* why) {
  for (const Move& move : plan_moves(candidates, shards_in(layer))) {
    const std::vector<ShardId> held = held_by(move.source, layer);
    SessionState& source = sessions_.at(move.source);
    for (std::uint32_t i = 0; i < move.shards; ++i) {
      const ShardId shard = held[held.size() - 1 - i];
      ask_for(shard, move.source, source);
      leases_.at(shard).moved_why = source.no_shards.empty() ? why : source.no_shards;
    }
    outbox_.log(LogLevel::kInfo, "moving",
                fmt::format("{} {} away from {}", counted(move.shards, "shard"),
                            move.shards == 1 ? "moves" : "move", source.name()));
  }
}

}  // namespace gleaner
