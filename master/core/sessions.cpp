#include "master/core/sessions.hpp"

#include <fmt/format.h>

#include <chrono>

#include "common/text.hpp"
#include "schema/versions.hpp"

namespace gleaner {

namespace {

// Tools that get an answer between two ticks.
constexpr std::uint32_t kObserversPerTick = 4;
// A volunteer's pauses are logged at most once in this time.
constexpr Millis kPauseRemarkPeriod{10'000};
// A paused trusted volunteer has this many times `stall`.
constexpr int kPauseStalls = 3;
// A stranger may take this multiple of the others' time for a unit.
constexpr double kStrangerPatience = 20;
// A stranger has this many times CoreConfig::stranger_stall for obligations other than units.
constexpr int kStrangerStalls = 6;
// A stranger gets no shards for this multiple of the time that others waited for it.
constexpr int kStrangerPause = 10;

// Forgets one key when the set has kPeersMax.
void remember(const KeyId& key, std::set<KeyId>& keys) {
  if (keys.size() >= kPeersMax) keys.erase(keys.begin());
  keys.insert(key);
}

template <typename Duration>
std::int64_t seconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
}

}  // namespace

SessionState* Sessions::find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

const SessionState* Sessions::find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : &found->second;
}

void Sessions::count_active(const SessionState& session, int change) {
  active_ += static_cast<std::uint32_t>(change);
  if (!session.is_trusted()) active_strangers_ += static_cast<std::uint32_t>(change);
}

double Sessions::fastest() const {
  if (!fastest_) {
    fastest_ = 0;
    for (const auto& [id, session] : sessions_) fastest_ = std::max(*fastest_, session.speed);
  }
  return *fastest_;
}

std::string Sessions::name_of(SessionId id) const {
  const SessionState* const session = find(id);
  return session == nullptr ? "?" : session->name();
}

// ---- Coming ------------------------------------------------------------------------------------

void Sessions::opened(const SessionOpened& event) {
  SessionState session;
  session.peer = event.peer;
  session.standing = event.standing;
  session.relay = event.relay;
  session.opened = session.last_heard = session.last_said = session.turn = outbox_.now();
  sessions_.emplace(event.session, std::move(session));
}

Result<std::uint32_t> Sessions::check(const SessionState& session, const Hello& hello) const {
  if (session.phase != SessionPhase::kIntroducing) {
    return Error{ErrorCode::kProtocol, "a second Hello on one connection"};
  }
  Result<std::uint32_t> protocol =
      admit("volunteer", hello.build, hello.protocol_min, hello.protocol_max);
  const std::uint64_t bytes = run_.config.holder_bytes + run_.config.shard_bytes;
  if (protocol && bytes > hello.memory_bytes) {
    return Error{ErrorCode::kResources,
                 fmt::format("one shard of this run takes {} MiB and the volunteer offers {} MiB: "
                             "raise its --memory",
                             bytes >> 20, hello.memory_bytes >> 20)};
  }
  if (!protocol) return protocol;
  if (run_.map.is_wide() && *protocol < kProtocolOfRounds) {
    return Error{ErrorCode::kVersion,
                 fmt::format("this run is trained by rounds of a shard, which protocol {} has, and "
                             "the volunteer (version {}) speaks up to {}: update the volunteer",
                             kProtocolOfRounds, hello.build, hello.protocol_max)};
  }
  if (std::string wrong = wrong_kernel(hello); !wrong.empty()) {
    return Error{ErrorCode::kFault, std::move(wrong)};
  }
  return protocol;
}

// A kernel that only one side knows proves nothing: the other side may be older.
std::string Sessions::wrong_kernel(const Hello& hello) const {
  for (const KernelDigest& ours : run_.config.kernels) {
    for (const KernelDigest& theirs : hello.kernels) {
      if (theirs.kernel != ours.kernel || theirs.digest == ours.digest) continue;
      return fmt::format(
          "the kernel {} gives {:016x} on the volunteer (version {}, {}) and {:016x} on the master "
          "(version {}), so its work would not be the same: run gleaner-volunteer --self-test on "
          "that machine; if it finds nothing wrong, install the master's version there",
          ours.kernel, theirs.digest, hello.build, hello.simd, ours.digest, kBuildVersion);
    }
  }
  return "";
}

std::optional<SessionId> Sessions::of_identity(const KeyId& identity) const {
  for (const auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kIntroducing && session.standing.identity == identity) {
      return id;
    }
  }
  return std::nullopt;
}

std::string Sessions::no_place_for(const SessionState& session) const {
  // The run's own volunteers decide audits and keep the run going, so that they always have a
  // place.
  if (session.standing.is_local) return "";
  if (active() >= run_.config.sessions_max) {
    return fmt::format(
        "this master has the {} volunteers that it takes at most: wait until one "
        "leaves, or ask for a larger network.volunteers_max",
        run_.config.sessions_max);
  }
  if (session.is_trusted() || active_strangers_ < places_for_strangers()) return "";
  return fmt::format(
      "this master has the {} strangers that it takes at most: wait until one "
      "leaves, or ask for a larger network.volunteers_max",
      places_for_strangers());
}

std::string Sessions::name_apart(const SessionState& session) const {
  const auto is_apart = [&](const SessionState& other) {
    return other.phase != SessionPhase::kIntroducing &&
           other.standing.identity != session.standing.identity;
  };
  std::string name = session.name();
  const bool is_taken = std::ranges::any_of(sessions_, [&](const auto& entry) {
    return is_apart(entry.second) && entry.second.name() == name;
  });
  if (!is_taken) return name;
  std::set<std::string> taken;
  for (const auto& [id, other] : sessions_) {
    if (is_apart(other)) taken.insert(other.name());
  }
  for (std::size_t number = 2; taken.contains(name); ++number) {
    const std::string end = fmt::format(" {}", number);
    name = printable(session.name(), kNameBytesMax - end.size()) + end;
  }
  return name;
}

Result<void> Sessions::activate(SessionId id, SessionState& session, Hello hello,
                                std::uint32_t protocol, RoundIndex checkpoint) {
  if (std::string why = no_place_for(session); !why.empty()) {
    return Error{ErrorCode::kBusy, std::move(why)};
  }
  if (session.standing.is_suspended && !proven_.contains(session.standing.identity)) {
    return Error{
        ErrorCode::kInvite,
        "the invite is suspended, since several that came by it gave false answers: ask the "
        "master's owner for another one"};
  }
  session.hello = std::move(hello);
  session.hello.name = name_apart(session);
  session.phase = SessionPhase::kActive;
  count_active(session, 1);
  account(session);
  session.joined = session.turn = outbox_.now();
  session.is_proven = proven_.contains(session.standing.identity);
  session.awaits_offer = session.hello.kept_shards > 0;
  Instant until = quarantined_keys_.until(session.standing.identity);
  if (!session.is_trusted()) {
    until = std::max(until, quarantined_invites_.until(session.standing.invite));
  }
  if (until > outbox_.now()) {
    session.quarantined_until = until;
    session.no_shards = "others waited for its work too long";
  }
  Welcome welcome;
  welcome.protocol = protocol;
  welcome.build = kBuildVersion;
  welcome.model = run_.model;
  welcome.heartbeat_ms = static_cast<std::uint32_t>(run_.config.heartbeat.count());
  welcome.silence_ms = static_cast<std::uint32_t>(run_.config.silence.count());
  welcome.checkpoint = checkpoint;
  welcome.test_fingerprint = run_.config.test_fingerprint;
  welcome.first_epoch = first_epoch_;
  welcome.run = run_.config.run;
  welcome.purpose = run_.config.purpose;
  outbox_.send(id, std::move(welcome));
  outbox_.tell(VolunteerJoined{session.name(), session.peer, session.hello.cores,
                               session.hello.memory_bytes, session.hello.simd, active()});
  return {};
}

Result<std::uint32_t> Sessions::admit(const char* who, const std::string& build,
                                      std::uint32_t protocol_min,
                                      std::uint32_t protocol_max) const {
  const std::uint32_t protocol = std::min(kProtocolMax, protocol_max);
  if (protocol < std::max(kProtocolMin, protocol_min)) {
    const char* older = protocol_max < kProtocolMin ? who : "master";
    return Error{ErrorCode::kVersion,
                 fmt::format("this master (version {}) speaks protocol {} to {}, the {} (version "
                             "{}) {} to {}: update the {}",
                             kBuildVersion, kProtocolMin, kProtocolMax, who, build, protocol_min,
                             protocol_max, older)};
  }
  return protocol;
}

Result<std::uint32_t> Sessions::admit_observer(const SessionState& session,
                                               const Observe& observe) {
  if (session.phase != SessionPhase::kIntroducing) {
    return Error{ErrorCode::kProtocol, "a volunteer that asks how the run stands"};
  }
  Result<std::uint32_t> protocol =
      admit("tool", observe.build, observe.protocol_min, observe.protocol_max);
  if (!protocol) return protocol;
  // Observers that ask without end must not take time from the training.
  if (observers_ >= kObserversPerTick) {
    return Error{ErrorCode::kBusy, "too many ask this master how the run stands: try again"};
  }
  ++observers_;
  return protocol;
}

// ---- Keeping in touch --------------------------------------------------------------------------

Millis Sessions::time_for_unit(const SessionState& session) const {
  if (!unit_times_) {
    std::vector<double> all;
    for (const auto& [id, other] : sessions_) {
      if (other.has_unit_time()) all.push_back(other.unit_time_us());
    }
    unit_times_.emplace(std::move(all));
  }
  const std::optional<double> others =
      session.has_unit_time() ? unit_times_->without(session.unit_time_us()) : unit_times_->all();
  if (!others) return run_.config.stall;
  const bool is_wide = run_.map.is_wide();
  const auto batches =
      is_wide ? run_.plan.round_end(0) : std::uint64_t{run_.config.batches_per_unit_max};
  const double unit_us = *others * static_cast<double>(batches);
  const auto fair = std::chrono::duration_cast<Millis>(
      Micros(static_cast<std::int64_t>(std::min(kStrangerPatience * unit_us, 1e12))));
  // A shard-round cannot be made smaller for a slow volunteer, which therefore gets longer.
  if (is_wide) {
    return std::max(is_audited(session) ? run_.config.stranger_stall : run_.config.stall, fair);
  }
  return std::min(run_.config.stall, std::max(run_.config.stranger_stall, fair));
}

Millis Sessions::time_for(Obligation obligation, const SessionState& session) const {
  if (obligation == Obligation::kHello) return run_.config.join_timeout;
  if (obligation == Obligation::kHeartbeat) return run_.config.silence;
  if (obligation == Obligation::kUnit && (is_audited(session) || run_.map.is_wide())) {
    return time_for_unit(session);
  }
  if (!is_audited(session)) return run_.config.stall;
  return std::min(run_.config.stall, run_.config.stranger_stall * kStrangerStalls);
}

bool Sessions::may_have_trained(const KeyId& key) const {
  const auto may_hold = [&](const std::set<KeyId>& keys) {
    return keys.contains(key) || keys.size() >= kPeersMax;
  };
  return may_hold(proven_) || may_hold(trained_);
}

void Sessions::prove(SessionState& session) {
  session.is_proven = true;
  session.no_shards.clear();
  remember(session.standing.identity, proven_);
}

void Sessions::note_trained(const KeyId& key) {
  remember(key, trained_);
}

void Sessions::quarantine(SessionState& session, Millis waited) {
  const Millis first = run_.config.forget_slowness;
  const Millis at_least = is_audited(session) ? kStrangerPause * waited : Millis(0);
  session.quarantined_until =
      quarantined_keys_.missed(session.standing.identity, first, at_least, outbox_.now());
  if (session.is_trusted() || session.is_proven) return;
  quarantined_invites_.missed(session.standing.invite, first, Millis(0), outbox_.now());
}

std::optional<Sessions::Overdue> Sessions::overdue(
    const SessionState& session,
    const std::function<std::optional<OutstandingWork>()>& outstanding) const {
  const Instant now = outbox_.now();
  if (session.phase == SessionPhase::kIntroducing) {
    const Millis time = time_for(Obligation::kHello, session);
    if (now - session.opened < time) return std::nullopt;
    return Overdue{fmt::format("no Hello within {} s", seconds(time))};
  }
  const auto waited = [&](const OutstandingWork& owed) {
    return std::chrono::duration_cast<Millis>(now - owed.since);
  };
  if (now - session.last_heard >= time_for(Obligation::kHeartbeat, session)) {
    Overdue silent{fmt::format("silent for {} s", seconds(now - session.last_heard))};
    // A trusted volunteer may lose its power or its line without blame.
    const std::optional<OutstandingWork> owed = is_audited(session) ? outstanding() : std::nullopt;
    if (owed) silent.waited = waited(*owed);
    return silent;
  }
  std::optional<OutstandingWork> first = outstanding();
  if (!first) return std::nullopt;
  // A paused volunteer that is not audited may keep its shards for a while, since its owner may be
  // gone again soon.
  if (!is_audited(session) && session.paused_at > first->since) {
    first->due += run_.config.stall * (kPauseStalls - 1);
  }
  // A short time must have passed at the tick before as well: after a freeze the master first reads
  // the messages that volunteers have sent meanwhile.
  const bool is_short = first->due - first->since < run_.config.stall;
  if ((is_short ? tick_before_ : now) < first->due) return std::nullopt;
  return Overdue{fmt::format("did not {} within {} s", what_of(first->what),
                             seconds(first->due - first->since)),
                 waited(*first)};
}

void Sessions::send_heartbeat(SessionId id, SessionState& session, RunNews news) {
  session.last_said = outbox_.now();
  Heartbeat heartbeat;
  heartbeat.echo_us = static_cast<std::uint64_t>(outbox_.now().time_since_epoch().count());
  heartbeat.echoed_us = session.peer_clock_us;
  heartbeat.news = std::move(news);
  heartbeat.news->no_shards = session.no_shards;
  outbox_.send(id, std::move(heartbeat));
}

void Sessions::heard(SessionState& session, const Heartbeat& heartbeat) const {
  session.peer_clock_us = heartbeat.echo_us;
  const std::int64_t now_us = outbox_.now().time_since_epoch().count();
  const auto echoed = static_cast<std::int64_t>(heartbeat.echoed_us);
  if (echoed > 0 && echoed <= now_us) session.round_trip_us = now_us - echoed;
  // A leaving volunteer computes until its shards are handed over, also while it is paused.
  if (session.phase == SessionPhase::kLeaving) return;
  const bool was_paused = session.is_paused();
  if (!was_paused) session.paused_since = outbox_.now();
  session.paused = heartbeat.paused;
  log_pause(session, was_paused);
  if (session.is_paused()) session.paused_at = outbox_.now();
}

// The peer decides how often it pauses, but not how long the log is. The end of a pause is logged
// if its beginning was.
void Sessions::log_pause(SessionState& session, bool was_paused) const {
  const Instant now = outbox_.now();
  if (was_paused && !session.is_paused() && session.is_pause_told) {
    outbox_.log(LogLevel::kInfo, "paused", fmt::format("{} works again", session.name()));
  } else if (!was_paused && session.is_paused()) {
    session.is_pause_told = !session.pause_told || now - *session.pause_told >= kPauseRemarkPeriod;
    if (!session.is_pause_told) return;
    session.pause_told = now;
    outbox_.log(LogLevel::kInfo, "paused",
                fmt::format("{} is {}", session.name(), session.pause_words()));
  }
}

void Sessions::restart_units() {
  for (auto& [id, session] : sessions_) session.turn = outbox_.now();
}

// ---- Going -------------------------------------------------------------------------------------

void Sessions::leaves(SessionId id, SessionState& session) {
  session.phase = SessionPhase::kLeaving;
  count_active(session, -1);
  leaving_.insert(id);
}

std::optional<SessionState> Sessions::take(SessionId id) {
  const auto found = sessions_.find(id);
  if (found == sessions_.end()) return std::nullopt;
  SessionState session = std::move(found->second);
  if (session.phase == SessionPhase::kActive) count_active(session, -1);
  sessions_.erase(found);
  leaving_.erase(id);
  return session;
}

void Sessions::departed(const SessionState& session, const std::string& reason,
                        std::uint32_t shards) {
  const bool is_polite = session.phase == SessionPhase::kLeaving && shards == 0;
  const std::string why = is_polite && session.is_paused() ? session.pause_words() : reason;
  gone_.push_back({session.name(), why, outbox_.now(), shards});
  if (gone_.size() > kDeparturesMax) gone_.pop_front();
  accounts_.end(session);
  outbox_.tell(VolunteerLeft{session.name(), why, is_polite, shards, active()});
}

std::vector<AccountRecord> Sessions::hand_in_accounts() {
  std::set<KeyId> present;
  for (const auto& [id, session] : sessions_) {
    if (session.phase != SessionPhase::kIntroducing) present.insert(session.standing.identity);
  }
  return accounts_.hand_in(present);
}

}  // namespace gleaner
