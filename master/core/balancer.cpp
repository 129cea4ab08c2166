#include "master/core/balancer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <queue>
#include <utility>

#include "common/order_statistics.hpp"
#include "common/text.hpp"
#include "master/core/placement.hpp"

namespace gleaner {
namespace {

double speed_of(const Holder& holder) {
  return std::max(holder.speed, 1e-9);
}

}  // namespace

std::vector<std::uint32_t> fair_shares(std::span<const Holder> holders, std::uint32_t shards) {
  std::vector<std::uint32_t> shares(holders.size());
  double total = 0;
  for (const Holder& holder : holders) total += holder.capacity > 0 ? speed_of(holder) : 0;
  std::uint32_t given = 0;
  // The best division gives everybody its proportional part, rounded down, at least.
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].capacity == 0) continue;
    const double exact = shards * speed_of(holders[i]) / total;
    shares[i] =
        std::min({static_cast<std::uint32_t>(exact), holders[i].capacity, holders[i].limit});
    given += shares[i];
  }
  // Give each remaining shard to the volunteer that would finish it first. Exceed limits only when
  // all volunteers have reached theirs.
  for (const bool is_limited : {true, false}) {
    using Next = std::pair<double, std::size_t>;  // when it would have finished one more
    std::priority_queue<Next, std::vector<Next>, std::greater<>> soonest;
    const auto enter = [&](std::size_t i) {
      const bool is_full =
          shares[i] >= holders[i].capacity || (is_limited && shares[i] >= holders[i].limit);
      if (!is_full) soonest.emplace((shares[i] + 1) / speed_of(holders[i]), i);
    };
    for (std::size_t i = 0; i < holders.size(); ++i) enter(i);
    for (; given < shards && !soonest.empty(); ++given) {
      const std::size_t first = soonest.top().second;
      soonest.pop();
      ++shares[first];
      enter(first);
    }
  }
  return shares;
}

Receivers::Receivers(std::span<const Holder> holders, std::uint32_t shards)
    : holders_(holders), shares_(fair_shares(holders, shards)) {
  for (const Holder& holder : holders) held_.push_back(holder.shards);
  for (std::size_t i = 0; i < holders.size(); ++i) enter(i);
}

void Receivers::enter(std::size_t position) {
  if (held_[position] >= holders_[position].capacity) return;
  const std::int64_t lacking = std::int64_t{shares_[position]} - std::int64_t{held_[position]};
  lacking_.emplace(static_cast<double>(lacking) / std::max(shares_[position], 1u), lacking,
                   -static_cast<std::int64_t>(position));
}

std::optional<std::size_t> Receivers::take(std::optional<SessionId> without) {
  for (auto most = lacking_.rbegin(); most != lacking_.rend(); ++most) {
    const auto position = static_cast<std::size_t>(-std::get<2>(*most));
    if (holders_[position].session == without) continue;
    lacking_.erase(std::next(most).base());
    ++held_[position];
    enter(position);
    return position;
  }
  return std::nullopt;
}

double gain_of_fair_shares(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  double slowest = 0;
  double slowest_when_fair = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const double speed = speed_of(holders[i]);
    slowest = std::max(slowest, holders[i].shards / speed);
    slowest_when_fair = std::max(slowest_when_fair, shares[i] / speed);
  }
  return slowest > slowest_when_fair ? 1 - slowest_when_fair / slowest : 0;
}

bool is_beyond_limits(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards > std::max(holders[i].limit, shares[i])) return true;
  }
  return false;
}

bool is_unbalanced(std::span<const Holder> holders, std::uint32_t shards, double hysteresis) {
  if (is_beyond_limits(holders, shards)) return true;
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards == 0 && shares[i] > 0) return true;  // a newcomer
  }
  return gain_of_fair_shares(holders, shards) > 1 - 1 / (1 + hysteresis);
}

std::vector<Move> plan_moves(std::span<const Holder> holders, std::uint32_t shards) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, shards);
  std::vector<Move> moves;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    if (holders[i].shards > shares[i]) {
      moves.push_back({holders[i].session, holders[i].shards - shares[i]});
    }
  }
  return moves;
}

// Which shards should move, and why somebody gets none.

namespace {

// A volunteer keeps the others waiting if its link alone takes this multiple of the time that the
// others take for a unit in all.
constexpr double kQuarantined = 3;

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
    if (layer == Layer::kInput && is_audited(session)) continue;
    Holder holder;
    holder.session = id;
    // A stranger may claim anything: until it has been measured it counts as the slowest.
    const double claim = is_audited(session) ? sum.lowest : double{session.hello.speed};
    holder.speed = expected_speed(session, claim, sum.trained, sum.claimed);
    holder.shards = count_held_by(id, layer);
    holder.capacity = capacity(id, session, layer);
    if (is_audited(session)) holder.limit = limit(session);
    // One that has missed two heartbeats may be dead: it keeps what it has, and gets no more. Nor
    // does one that is paused.
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
  return is_newcomer(session) ? Reliance::kNewcomer : Reliance::kProven;
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
  // A unit's bytes do not depend on the number of shards, so that fewer would not help: whoever's
  // link keeps all others waiting is to hold none.
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
    const bool is_late = session->transit_us > kQuarantined * typical_us;
    session->late_rounds = is_late ? session->late_rounds + 1 : 0;
    if (session->late_rounds < run_.config.unbalanced_rounds) continue;
    session->late_rounds = 0;
    session->quarantined_until = outbox_.now() + run_.config.forget_slowness;
    if (!can_do_without(id, Layer::kOutput) || !can_do_without(id, Layer::kInput)) {
      session->quarantined_until = {};
      continue;
    }
    sessions_.hold_back(*session);
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
    if (holders[i].capacity == 0 && is_newcomer(session)) {
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
  // Expect the next volunteer to vanish after as much time as has passed since the last one did. By
  // then a move must have saved the time that it takes. Where volunteers vanish faster than that,
  // newcomers get the shards of those that vanish.
  const double calm_us = static_cast<double>((outbox_.now() - *last_loss_).count());
  return calm_us * gain_of_fair_shares(candidates, run_.map.output_shards()) >=
         static_cast<double>(loading_time_.count());
}

void Placement::rebalance() {
  // Between two rounds, when a hand-over has nothing to carry: everything is in the commit.
  if (!run_.plan.is_round_end(pipeline_.frontier()) || stays_at_ == pipeline_.frontier()) return;
  // One wave of moves at a time: what is on its way will change the picture.
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
  // The link slows the input layer down, which another allocation would not mend.
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
