// Who is here: admission, keeping in touch, going; and each volunteer's account.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "common/counted.hpp"
#include "master/core/master_core.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

// Tools that are answered between two ticks.
constexpr std::uint32_t kObserversPerTick = 4;

}  // namespace

// ---- Coming ------------------------------------------------------------------------------------

void MasterCore::on(const SessionOpened& event) {
  SessionState session;
  session.peer = event.peer;
  session.opened = session.last_heard = session.last_said = session.last_progress = now_;
  sessions_.emplace(event.session, std::move(session));
}

void MasterCore::on_message(SessionId id, SessionState& session, Hello& hello) {
  if (session.phase != SessionPhase::kIntroducing) {
    refuse(id, ErrorCode::kProtocol, "a second Hello on one connection", false);
    return;
  }
  const std::optional<std::uint32_t> protocol =
      admit(id, "volunteer", hello.build, hello.protocol_min, hello.protocol_max, hello.token);
  if (!protocol) return;
  if (config_.shard_bytes > hello.memory_bytes) {
    refuse(id, ErrorCode::kResources,
           fmt::format("one shard of this run takes {} MiB and the volunteer offers {} MiB: raise "
                       "its --memory",
                       config_.shard_bytes >> 20, hello.memory_bytes >> 20),
           false);
    return;
  }
  for (const auto& [other, state] : sessions_) {
    if (state.phase != SessionPhase::kIntroducing &&
        state.hello.identity_high == hello.identity_high &&
        state.hello.identity_low == hello.identity_low) {
      // Its old connection broke without our noticing.
      const SessionId old = other;
      effects_.emplace_back(CloseSession{old});
      drop_session(old, "it connected again");
      break;
    }
  }
  if (active_sessions() >= config_.sessions_max) {
    refuse(id, ErrorCode::kBusy,
           fmt::format("this master has the {} volunteers that it takes at most: wait until one "
                       "leaves, or ask for a larger network.volunteers_max",
                       config_.sessions_max),
           true);
    return;
  }
  session.hello = std::move(hello);
  session.phase = SessionPhase::kActive;
  account(session);
  session.last_progress = now_;
  session.awaits_offer = session.hello.kept_shards > 0;
  if (!session.awaits_offer) has_newcomer_ = true;
  Welcome welcome;
  welcome.protocol = *protocol;
  welcome.build = kBuildVersion;
  welcome.model = model_;
  welcome.heartbeat_ms = static_cast<std::uint32_t>(config_.heartbeat.count());
  welcome.silence_ms = static_cast<std::uint32_t>(config_.silence.count());
  welcome.checkpoint = checkpoint_;
  welcome.test_fingerprint = config_.test_fingerprint;
  say(id, std::move(welcome));
  effects_.emplace_back(
      Notice(VolunteerCame{session.name(), session.peer, session.hello.cores,
                           session.hello.memory_bytes, session.hello.simd, active_sessions()}));
}

std::optional<std::uint32_t> MasterCore::admit(SessionId id, const char* who,
                                               const std::string& build, std::uint32_t protocol_min,
                                               std::uint32_t protocol_max,
                                               const std::string& token) {
  const std::uint32_t protocol = std::min(kProtocolMax, protocol_max);
  if (protocol < std::max(kProtocolMin, protocol_min)) {
    const char* older = protocol_max < kProtocolMin ? who : "master";
    refuse(id, ErrorCode::kVersion,
           fmt::format("this master (version {}) speaks protocol {} to {}, the {} (version {}) {} "
                       "to {}: update the {}",
                       kBuildVersion, kProtocolMin, kProtocolMax, who, build, protocol_min,
                       protocol_max, older),
           false);
    return std::nullopt;
  }
  if (token != config_.token) {
    refuse(id, ErrorCode::kToken,
           token.empty()
               ? fmt::format("this master asks for a join token: start the {} with --token", who)
               : "the join token is wrong: use the one the master was started with",
           false);
    return std::nullopt;
  }
  return protocol;
}

void MasterCore::on_message(SessionId id, SessionState& session, Observe& observe) {
  if (session.phase != SessionPhase::kIntroducing) {
    refuse(id, ErrorCode::kProtocol, "a volunteer that asks how the run stands", false);
    return;
  }
  const std::optional<std::uint32_t> protocol =
      admit(id, "tool", observe.build, observe.protocol_min, observe.protocol_max, observe.token);
  if (!protocol) return;
  // Whoever asks without end takes nothing from the training.
  if (observers_ >= kObserversPerTick) {
    refuse(id, ErrorCode::kBusy, "too many ask this master how the run stands: try again", true);
    return;
  }
  ++observers_;
  RunStatus answer = status();
  answer.protocol = *protocol;
  say(id, std::move(answer));
  effects_.emplace_back(CloseSession{id});
  sessions_.erase(id);
}

// ---- Keeping in touch --------------------------------------------------------------------------

void MasterCore::on(const Tick&) {
  observers_ = 0;
  std::vector<std::pair<SessionId, std::string>> gone;
  for (auto& [id, session] : sessions_) {
    const auto seconds = [](auto duration) {
      return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
    };
    if (session.phase == SessionPhase::kIntroducing) {
      if (now_ - session.opened >= config_.hello_deadline) {
        gone.emplace_back(id, fmt::format("no Hello within {} s", seconds(config_.hello_deadline)));
      }
      continue;
    }
    if (now_ - session.last_heard >= config_.silence) {
      gone.emplace_back(id, fmt::format("silent for {} s", seconds(now_ - session.last_heard)));
    } else if (!store_full_since_ && now_ - session.last_progress >= config_.stall &&
               owes(id, session)) {
      gone.emplace_back(id,
                        fmt::format("owes work for {} s", seconds(now_ - session.last_progress)));
    } else {
      keep_in_touch(id, session);
      forget_slowness(id, session);
    }
  }
  for (const auto& [id, reason] : gone) {
    say(id, Refusal{ErrorCode::kStaleLease,
                    reason + ": its leases have ended, connect again to take part", true});
    effects_.emplace_back(CloseSession{id});
    drop_session(id, reason);
  }
  if (stop_deadline_ && now_ >= *stop_deadline_) {
    finish({Outcome::kAbandoned,
            {ErrorCode::kShuttingDown,
             fmt::format("round {} did not become whole in time: it is abandoned and will be "
                         "trained again from checkpoint {}",
                         checkpoint_, checkpoint_)}});
  }
}

bool MasterCore::owes(SessionId id, const SessionState& session) const {
  if (!session.units.empty() || session.awaits_offer) return true;
  for (const ShardId shard : leases_.held_by(id)) {
    const ShardLease& lease = leases_.at(shard);
    if (lease.state != LeaseState::kReady) return true;
    if (lease.next_batch >= plan_.round_end(lease.next_commit)) return true;  // a commit
  }
  return false;
}

void MasterCore::forget_slowness(SessionId id, SessionState& session) {
  if (session.speed <= 0 || now_ - session.last_result < config_.forget_slowness ||
      !held_by(id, Layer::kOutput).empty()) {
    return;
  }
  session.speed *= 2;
  session.last_result = now_;
}

void MasterCore::begin_debt(SessionState& session) {
  // Debts that run already keep their clock, or a volunteer could be given work for ever.
  if (session.units.empty()) session.last_progress = now_;
}

void MasterCore::keep_in_touch(SessionId id, SessionState& session) {
  if (now_ - session.last_said < config_.heartbeat) return;
  session.last_said = now_;
  RunNews news;
  news.round = checkpoint_;
  news.rounds = plan_.round_count();
  news.epoch = pipeline_.applied() < plan_.batch_count() ? plan_.epoch_of(pipeline_.applied())
                                                         : model_.epochs;
  news.epochs = model_.epochs;
  news.volunteers = active_sessions();
  news.precision_at_1 = static_cast<float>(last_evaluation_.p_at_1);
  news.waiting_for = waiting_for();
  news.no_shards = session.no_shards;
  Heartbeat heartbeat;
  heartbeat.echo_us = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  heartbeat.echoed_us = session.peer_clock_us;
  heartbeat.news = std::move(news);
  say(id, std::move(heartbeat));
}

void MasterCore::on_message(SessionId, SessionState& session, Heartbeat& heartbeat) {
  session.peer_clock_us = heartbeat.echo_us;
  const std::int64_t now_us = now_.time_since_epoch().count();
  const auto echoed = static_cast<std::int64_t>(heartbeat.echoed_us);
  if (echoed > 0 && echoed <= now_us) session.round_trip_us = now_us - echoed;
}

// ---- Going -------------------------------------------------------------------------------------

void MasterCore::on_message(SessionId id, SessionState& session, Leaving& leaving) {
  if (session.phase != SessionPhase::kActive) return;
  session.phase = SessionPhase::kLeaving;
  begin_debt(session);
  for (const ShardId shard : leases_.held_by(id)) {
    const LeaseRef lease{shard, leases_.at(shard).epoch};
    if (leases_.at(shard).state == LeaseState::kLoading) {
      say(id, Revoke{lease});
      leases_.at(shard).held_before = session.name();
      leases_.at(shard).moved_why = "it leaves: " + leaving.reason;
      leases_.release(shard, now_);
    } else if (leases_.at(shard).state == LeaseState::kReady) {
      say(id, ReleaseRequest{lease});
      leases_.at(shard).moved_why = "it leaves: " + leaving.reason;
      leases_.set_state(shard, LeaseState::kReleasing, now_);
    }
  }
  remark(Severity::kInfo, "leaving",
         fmt::format("{} is leaving ({}) and hands over {}", session.name(), leaving.reason,
                     counted(leases_.held_by(id).size(), "shard")));
}

void MasterCore::on_message(SessionId id, SessionState&, Goodbye& goodbye) {
  effects_.emplace_back(CloseSession{id});
  drop_session(id, goodbye.sentence.empty() ? "it said goodbye" : goodbye.sentence);
}

void MasterCore::on(const SessionClosed& event) {
  drop_session(event.session, event.reason);
}

void MasterCore::refuse(SessionId id, ErrorCode code, std::string sentence, bool retry) {
  say(id, Refusal{code, sentence, retry});
  effects_.emplace_back(CloseSession{id});
  drop_session(id, sentence);
}

void MasterCore::drop_session(SessionId id, const std::string& reason) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return;
  const SessionState session = std::move(found->second);
  sessions_.erase(found);
  if (session.phase == SessionPhase::kIntroducing) {
    remark(Severity::kWarning, "turned_away", fmt::format("{}: {}", session.peer, reason));
    return;
  }
  const std::vector<ShardId> freed = leases_.revoke_all(id, now_);
  for (const ShardId shard : freed) {
    leases_.at(shard).held_before = session.name();
    leases_.at(shard).moved_why = "it is gone: " + reason;
  }
  gone_.push_back({session.name(), reason, now_, static_cast<std::uint32_t>(freed.size())});
  if (gone_.size() > kDeparturesMax) gone_.pop_front();
  // All at once: that was the network, and they will be back.
  if (!freed.empty() && leases_.in_state(LeaseState::kFree).size() == leases_.size()) {
    expects_rejoin_ = checkpoint_ > 0;
  }
  if (!freed.empty()) last_loss_ = now_;
  AccountRecord& ended = account(session);
  ended.units_expired += session.units.size();
  // Who comes and goes without having done anything leaves nothing behind.
  if (ended.units_issued == 0 && ended.faults == 0 && !ended.is_stored) {
    accounts_.erase({ended.identity_high, ended.identity_low});
  }
  for (const auto& [unit_id, unit] : session.units) unassign(unit);
  effects_.emplace_back(Notice(VolunteerGone{
      session.name(), reason, session.phase == SessionPhase::kLeaving && freed.empty(),
      static_cast<std::uint32_t>(freed.size()), active_sessions()}));
}

void MasterCore::unassign(const UnitInFlight& unit) {
  if (unit.kind != UnitInFlight::Kind::kEvaluate || !evaluation_) return;
  std::vector<ShardId> shards;
  for (const LeaseRef& lease : unit.leases) shards.push_back(lease.shard);
  evaluation_->unassigned(unit.eval_begin, shards);
}

// ---- Accounts ----------------------------------------------------------------------------------

std::uint32_t MasterCore::active_sessions() const {
  return static_cast<std::uint32_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [](const auto& entry) { return entry.second.phase == SessionPhase::kActive; }));
}

AccountRecord& MasterCore::account(const SessionState& session) {
  const Hello& hello = session.hello;
  AccountRecord& record = accounts_[{hello.identity_high, hello.identity_low}];
  record.identity_high = hello.identity_high;
  record.identity_low = hello.identity_low;
  record.name = session.name();
  return record;
}

std::vector<AccountRecord> MasterCore::hand_in_accounts() {
  std::set<std::pair<std::uint64_t, std::uint64_t>> present;
  for (const auto& [id, session] : sessions_) {
    if (session.phase == SessionPhase::kIntroducing) continue;
    present.emplace(session.hello.identity_high, session.hello.identity_low);
  }
  std::vector<AccountRecord> all;
  all.reserve(accounts_.size());
  for (auto& [identity, record] : accounts_) {
    record.is_final = !present.contains(identity);
    all.push_back(record);
    record.is_stored = true;
  }
  std::erase_if(accounts_, [](const auto& entry) { return entry.second.is_final; });
  return all;
}

std::vector<AccountRecord> MasterCore::accounts() const {
  std::vector<AccountRecord> all;
  all.reserve(accounts_.size());
  for (const auto& [identity, record] : accounts_) all.push_back(record);
  return all;
}

void MasterCore::record_sent(SessionId id, const Message& message, std::size_t bytes) {
  if (std::holds_alternative<TrainUnit>(message) || std::holds_alternative<InputUnit>(message)) {
    unit_bytes_down_ += bytes;
    round_bytes_down_ += bytes;
  }
  const auto found = sessions_.find(id);
  if (found != sessions_.end() && found->second.phase != SessionPhase::kIntroducing) {
    account(found->second).down.add(message, bytes);
  }
}

}  // namespace gleaner
