// Who holds what: lending free shards, moving shards, and why somebody gets none. Nothing here can
// change a number of the model.
#include <fmt/format.h>

#include <algorithm>

#include "common/counted.hpp"
#include "master/core/master_core.hpp"

namespace gleaner {
namespace {

// A link that takes this multiple of what others take in all keeps them waiting.
constexpr double kHeldBack = 3;

}  // namespace

double MasterCore::expected_speed(const SessionState& session) const {
  if (session.speed > 0) return session.speed;
  // One that has not trained yet measured itself, in another unit; those that did both translate.
  double trained = 0;
  double claimed = 0;
  for (const auto& [id, other] : sessions_) {
    if (other.phase != SessionPhase::kActive || other.speed <= 0) continue;
    trained += other.speed;
    claimed += double{other.hello.speed};
  }
  const double speed = double{session.hello.speed};
  return claimed > 0 ? speed * trained / claimed : speed;
}

std::vector<ShardId> MasterCore::held_by(SessionId holder, Layer layer) const {
  std::vector<ShardId> held = leases_.held_by(holder);
  std::erase_if(held, [&](ShardId shard) { return layer_of(shard) != layer; });
  return held;
}

std::uint32_t MasterCore::capacity(const SessionState& session, Layer layer,
                                   std::size_t held_of_other) const {
  const bool is_output = layer == Layer::kOutput;
  const std::uint64_t bytes = is_output ? config_.shard_bytes : config_.input_shard_bytes;
  const std::uint64_t other = is_output ? config_.input_shard_bytes : config_.shard_bytes;
  if (bytes == 0) return shards_in(layer);
  const std::uint64_t memory = session.hello.memory_bytes;
  const std::uint64_t free = memory - std::min(memory, other * held_of_other);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(shards_in(layer), free / bytes));
}

std::vector<Holder> MasterCore::holders(Layer layer) const {
  std::vector<Holder> holders;
  for (const auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kActive || session.awaits_offer) continue;
    Holder holder;
    holder.session = id;
    holder.speed = expected_speed(session);
    holder.shards = static_cast<std::uint32_t>(held_by(id, layer).size());
    holder.capacity = capacity(session, layer, leases_.held_by(id).size() - holder.shards);
    if (now_ < session.held_back_until) holder.capacity = 0;
    // One that has missed two heartbeats may be dead: it keeps what it has, and gets no more.
    if (now_ - session.last_heard > config_.heartbeat * 5 / 2) {
      holder.capacity = std::min(holder.capacity, holder.shards);
    }
    holders.push_back(holder);
  }
  return holders;
}

bool MasterCore::have_room(Layer layer) const {
  std::uint64_t room = 0;
  for (const Holder& holder : holders(layer)) room += holder.capacity;
  return room >= shards_in(layer);
}

std::uint32_t MasterCore::rows_per_chunk(ShardId shard) const {
  // About as many bytes as a chunk of an output shard.
  return config_.rows_per_chunk * (model_.hidden + 1) / map_.row_width(shard);
}

std::uint32_t MasterCore::base_chunks(ShardId shard, RoundIndex base_round) const {
  if (base_round == 0 && model_.initial_fingerprint == 0) return 0;
  const std::uint32_t rows = rows_per_chunk(shard);
  return (map_.row_count(shard) + rows - 1) / rows;
}

void MasterCore::lend_free_shards() {
  for (const ShardId shard : leases_.in_state(LeaseState::kFree)) {
    const ShardLease& free = leases_.at(shard);
    // A hand-over continues from a commit; the commit must be durable before it can be fetched.
    if (free.handed_over && free.handed_over->base_round > free.committed) continue;
    const Layer layer = layer_of(shard);
    const std::vector<Holder> candidates = holders(layer);
    const std::optional<std::size_t> receiver = next_receiver(candidates, shards_in(layer));
    if (!receiver) continue;
    if (free.handed_over && free.handed_over->base_round < free.committed) {
      leases_.at(shard).handed_over.reset();
    }
    const SessionId id = candidates[*receiver].session;
    SessionState& session = sessions_.at(id);
    const BatchIndex next_batch =
        free.handed_over ? free.handed_over->next_batch : plan_.round_begin(free.committed);
    LeaseGrant grant;
    grant.lease = leases_.grant(shard, id, free.committed, next_batch, now_);
    grant.base_round = free.base_round;
    grant.next_batch = next_batch;
    grant.base_chunks = base_chunks(shard, grant.base_round);
    grant.chunks =
        grant.base_chunks +
        (free.handed_over ? static_cast<std::uint32_t>(free.handed_over->parts.size()) : 0);
    leases_.at(shard).chunks = grant.chunks;
    if (layer == Layer::kInput) {
      begin_input(shard, session, next_batch);
    } else {
      const NeuronRange range = map_.neurons(shard);
      grant.label_counts.reserve(range.size());
      for (std::uint32_t neuron = range.begin; neuron < range.end; ++neuron) {
        grant.label_counts.push_back(config_.label_counts[map_.label_of_neuron(neuron)]);
      }
    }
    begin_debt(session);
    say(id, std::move(grant));
  }
}

void MasterCore::weigh_balance() {
  notice_held_back();
  const std::vector<Holder> present = holders(Layer::kOutput);
  const bool is_off = is_unbalanced(present, map_.output_shards(), config_.hysteresis);
  unbalanced_rounds_ = is_off ? unbalanced_rounds_ + 1 : 0;
  explain_shares(present);
}

void MasterCore::notice_held_back() {
  // A unit's bytes do not depend on the number of shards, so that fewer would not help: whoever's
  // link keeps all others waiting is to hold none.
  std::vector<SessionState*> holding;
  for (auto& [id, session] : sessions_) {
    if (session.phase == SessionPhase::kActive && session.speed > 0 &&
        now_ >= session.held_back_until && !held_by(id, Layer::kOutput).empty()) {
      holding.push_back(&session);
    }
  }
  for (SessionState* session : holding) {
    std::vector<double> others;
    for (const SessionState* other : holding) {
      if (other != session) others.push_back(other->transit_us + other->compute_us);
    }
    if (others.empty()) return;
    const auto middle = others.begin() + static_cast<std::ptrdiff_t>(others.size() / 2);
    std::nth_element(others.begin(), middle, others.end());
    const bool is_late = session->transit_us > kHeldBack * *middle;
    session->late_rounds = is_late ? session->late_rounds + 1 : 0;
    if (session->late_rounds < config_.unbalanced_rounds) continue;
    session->late_rounds = 0;
    session->held_back_until = now_ + config_.forget_slowness;
    if (!have_room(Layer::kOutput) || !have_room(Layer::kInput)) {  // somebody has to hold them
      session->held_back_until = now_;
      continue;
    }
    has_newcomer_ = true;
    session->no_shards = fmt::format(
        "its link keeps all waiting: a unit is {:.0f} ms on its way, others are done within "
        "{:.0f} ms",
        session->transit_us / 1e3, *middle / 1e3);
    remark(Severity::kInfo, "no_shards",
           fmt::format("{} gets no shards: {}", session->name(), session->no_shards));
    return;  // one at a time: without it the others may be in time
  }
}

void MasterCore::explain_shares(std::span<const Holder> holders) {
  const std::vector<std::uint32_t> shares = fair_shares(holders, map_.output_shards());
  double total = 0;
  for (const Holder& holder : holders) total += holder.speed;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    SessionState& session = sessions_.at(holders[i].session);
    if (now_ < session.held_back_until) continue;
    if (shares[i] > 0 || !leases_.held_by(holders[i].session).empty()) {
      session.no_shards.clear();
      continue;
    }
    if (!session.no_shards.empty()) continue;
    if (holders[i].capacity == 0) {
      session.no_shards = "its memory is too small for a shard";
    } else {
      session.no_shards = fmt::format(
          "others are done sooner: it does {:.1f} % of what all do together, and one of {} shards "
          "is {:.1f} %",
          100 * holders[i].speed / std::max(total, 1e-9), map_.output_shards(),
          100.0 / map_.output_shards());
    }
    remark(Severity::kInfo, "no_shards",
           fmt::format("{} gets no shards: {}", session.name(), session.no_shards));
  }
}

bool MasterCore::is_between_rounds() const {
  const BatchIndex frontier = pipeline_.frontier();
  if (!plan_.is_round_end(frontier)) return false;
  for (std::uint32_t s = 0; s < leases_.size(); ++s) {
    const ShardLease& lease = leases_.at(ShardId{s});
    if (lease.state != LeaseState::kFree && lease.next_batch != frontier) return false;
  }
  return true;
}

bool MasterCore::is_move_worth_while(const std::vector<Holder>& candidates) const {
  if (!last_loss_) return true;
  // Expect the next volunteer to vanish after as long as none has: until then a move must bring in
  // the time it takes. Where they vanish faster, newcomers get the shards of the vanished instead.
  const double calm_us = static_cast<double>((now_ - *last_loss_).count());
  return calm_us * gain_of_fair_shares(candidates, map_.output_shards()) >=
         static_cast<double>(loading_time_.count());
}

void MasterCore::rebalance() {
  // Between two rounds, when a hand-over has nothing to carry: everything is in the commit.
  if (!is_between_rounds()) return;
  // One wave of moves at a time: what is on its way will change the picture.
  if (!leases_.in_state(LeaseState::kReleasing).empty() ||
      !leases_.in_state(LeaseState::kLoading).empty() ||
      !leases_.in_state(LeaseState::kFree).empty()) {
    return;
  }
  const std::vector<Holder> candidates = holders(Layer::kOutput);
  const bool must_move = std::any_of(candidates.begin(), candidates.end(),
                                     [](const Holder& h) { return h.shards > h.capacity; });
  if (!must_move && !is_move_worth_while(candidates)) return;
  const bool is_for_newcomer = has_newcomer_;
  has_newcomer_ = false;
  unbalanced_rounds_ = 0;
  move_shards(Layer::kOutput, candidates,
              is_for_newcomer ? "somebody has come who is to have a fair share"
                              : "with other shares all are done sooner");
  // What slows the input layer down is its link, which other shares would not mend.
  if (input_ && is_for_newcomer) {
    move_shards(Layer::kInput, holders(Layer::kInput),
                "somebody has come who is to have a fair share");
  }
}

void MasterCore::move_shards(Layer layer, const std::vector<Holder>& candidates, const char* why) {
  for (const Move& move : plan_moves(candidates, shards_in(layer))) {
    const std::vector<ShardId> held = held_by(move.source, layer);
    const SessionState& source = sessions_.at(move.source);
    begin_debt(sessions_.at(move.source));
    for (std::uint32_t i = 0; i < move.shards; ++i) {
      const ShardId shard = held[held.size() - 1 - i];
      say(move.source, ReleaseRequest{{shard, leases_.at(shard).epoch}});
      leases_.set_state(shard, LeaseState::kReleasing, now_);
      leases_.at(shard).moved_why = source.no_shards.empty() ? why : source.no_shards;
    }
    remark(Severity::kInfo, "moving",
           fmt::format("{} {} away from {}", counted(move.shards, "shard"),
                       move.shards == 1 ? "moves" : "move", source.name()));
  }
}

}  // namespace gleaner
