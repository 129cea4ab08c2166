#include "volunteer/core/volunteer_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "common/host_port.hpp"
#include "common/order_statistics.hpp"
#include "common/text.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kRoundsTimed = 5;
// Time for the program to end after the hand-over.
constexpr Millis kExitTime{2'000};
// The advice where small messages came and no large one did.
constexpr const char* kLargePackets =
    "; if that repeats, large packets may be lost on the way, as in a tunnel: try `ip link set dev "
    "DEVICE mtu 1280` here";

}  // namespace

VolunteerCore::VolunteerCore(VolunteerCoreConfig config)
    : config_(std::move(config)),
      backoff_(config_.retry_first, config_.retry_longest, config_.seed),
      keeping_backoff_(config_.retry_first, std::min(config_.retry_keeping, config_.retry_longest),
                       config_.seed) {}

Effects VolunteerCore::handle(Event event, Instant now) {
  if (phase_ == Phase::kDone) return {};
  notice_freeze(now);
  now_ = now;
  std::visit([this](auto& e) { on(e); }, event);
  return std::exchange(effects_, {});
}

// Ticks come a few times a second. If nothing comes for half of `silence`, the process stood still.
// Half, because the master counts from an earlier message.
void VolunteerCore::notice_freeze(Instant now) {
  if (phase_ != Phase::kActive || now - now_ < silence_ / 2) return;
  freeze_ = Freeze{now - now_, now};
  last_heard_ = now;  // nobody listened
}

std::string VolunteerCore::explain_silence() const {
  std::string reason = fmt::format("the master has been silent for {} s", silence_.count() / 1000);
  // A path that drops large packets lets everything pass up to the first chunk.
  if (has_loaded_ || requested_.empty()) return reason;
  return reason + ", and has sent no part of a shard since it admitted this volunteer" +
         kLargePackets;
}

std::string VolunteerCore::explain_end(std::string reason) const {
  if (!freeze_) return reason;
  return fmt::format(
      "this volunteer was frozen or suspended for {:.1f} s, and the master has ended its leases "
      "({}): "
      "it starts afresh, under leases of a later epoch",
      static_cast<double>(freeze_->lasted.count()) / 1e6, reason);
}

// ---- Connection --------------------------------------------------------------------------------

void VolunteerCore::on(const Started&) {
  leave_in_time();
  if (pause_ || phase_ == Phase::kDone) return;
  phase_ = Phase::kConnecting;
  phase_since_ = last_met_ = now_;
  effects_.emplace_back(Connect{});
}

void VolunteerCore::on(const Connected&) {
  if (leave_) {
    exit(true, {ErrorCode::kShuttingDown, "stopped before it had work"});
    return;
  }
  ++generation_;
  is_unreached_ = false;
  phase_ = Phase::kIntroduced;
  phase_since_ = last_heard_ = now_;
  has_loaded_ = false;
  freeze_.reset();
  Hello hello = config_.hello;
  hello.memory_bytes >>= std::min(memory_halvings_, 63u);
  hello.kept_shards = static_cast<std::uint32_t>(kept_shards_.size());
  has_announced_ = !kept_shards_.empty();
  say(std::move(hello));
}

void VolunteerCore::on(const ConnectFailed& event) {
  is_unreached_ = true;
  retry_later(cause_of(event.reason, config_.master));  // the status names the master as well
}

void VolunteerCore::on(const Disconnected& event) {
  const bool is_without =
      phase_ == Phase::kRetrying || phase_ == Phase::kResting || phase_ == Phase::kFinished;
  if (is_without) return;
  const bool was_closing = phase_ == Phase::kClosing;
  if (event.is_starved) ++memory_halvings_;
  end_connection();
  retry_later(was_closing ? why_ : explain_end(event.reason));
}

void VolunteerCore::end_connection() {
  if (phase_ == Phase::kActive) served_ += now_ - std::exchange(welcomed_, now_);
  ++generation_;  // results of work still running are not wanted any more
  work_.clear();
  work_bytes_ = 0;
  replies_.clear();
  commit_parts_ = 0;
  for (auto& [shard, load] : loads_) {
    if (!load.base_chunks.empty()) {
      kept_[shard] = {load.grant.lease.epoch, load.grant.base_round, std::move(load.base_chunks)};
    }
  }
  loads_.clear();
  requested_.clear();
  kept_shards_.merge(shards_);
  shards_.clear();
  news_.reset();
  timed_checkpoint_.reset();
  checkpoint_since_.reset();
}

void VolunteerCore::retry_later(std::string why) {
  if (leave_ && leave_->is_final) {
    exit(true,
         {ErrorCode::kShuttingDown, "stopped; the master was not there to take over: " + why});
    return;
  }
  // A hand-over for a pause is over, with or without success.
  const bool handed_over = leave_.has_value();
  leave_.reset();
  phase_since_ = now_;
  if (handed_over) stop_keeping();
  if (pause_) {
    phase_ = Phase::kResting;
    why_ = std::move(why);
    return;
  }
  phase_ = Phase::kRetrying;
  if (handed_over) {
    next_attempt_ = now_;
    why_ = std::move(why);
    return;
  }
  next_attempt_ = now_ + (kept_shards_.empty() ? backoff_ : keeping_backoff_).next();
  why_ = std::move(why);
}

void VolunteerCore::hang_up(ErrorCode code, std::string why) {
  say(Goodbye{code, why});
  effects_.emplace_back(Disconnect{});
  end_connection();
  phase_ = Phase::kClosing;
  phase_since_ = now_;
  why_ = std::move(why);
}

void VolunteerCore::exit(bool success, Error error) {
  end_connection();
  why_ = error.message;
  effects_.emplace_back(Exit{success, std::move(error)});
  phase_ = Phase::kDone;
}

void VolunteerCore::say_heartbeat(std::uint64_t echoed_us) {
  Heartbeat heartbeat;
  heartbeat.echo_us = static_cast<std::uint64_t>(now_.time_since_epoch().count());
  heartbeat.echoed_us = echoed_us;
  if (pause_ && !leave_) heartbeat.paused = pause_->reason;
  say(std::move(heartbeat));
}

void VolunteerCore::say(Message message) {
  last_said_ = now_;
  effects_.emplace_back(Send{std::move(message)});
}

// ---- Leaving, pausing and time -----------------------------------------------------------------

void VolunteerCore::on(const StopRequested& event) {
  const bool is_connected = phase_ == Phase::kIntroduced || phase_ == Phase::kActive;
  if ((leave_ && leave_->is_final) || !is_connected) {
    exit(true, {ErrorCode::kShuttingDown, "stopped"});
    return;
  }
  const bool has_asked = leave_.has_value();
  leave_ = Leave{now_ + event.grace.value_or(config_.leave_grace), event.reason, true};
  if (phase_ == Phase::kActive && !has_asked) say(Leaving{event.reason});
}

void VolunteerCore::time_round(RoundIndex checkpoint) {
  if (timed_checkpoint_ == checkpoint) return;
  if (checkpoint_since_ && checkpoint > *timed_checkpoint_) {
    const double passed_us = static_cast<double>((now_ - *checkpoint_since_).count());
    round_us_.push_back(passed_us / static_cast<double>(checkpoint - *timed_checkpoint_));
    if (round_us_.size() > kRoundsTimed) round_us_.pop_front();
  }
  // The first checkpoint in the news may have been there for long.
  if (timed_checkpoint_) checkpoint_since_ = now_;
  timed_checkpoint_ = checkpoint;
}

// Needs a round for the training and another for the hand-over, which sends no more rows than a
// round's commit does.
void VolunteerCore::leave_in_time() {
  if (!config_.until || (leave_ && leave_->is_final)) return;
  Micros needed = config_.leave_grace;
  if (!round_us_.empty()) {
    needed += Micros(std::llround(2 * median({round_us_.begin(), round_us_.end()})));
  }
  const Micros left = std::max(*config_.until - now_, Micros(0));
  if (left > needed) return;
  const std::string reason = fmt::format(
      "its time here ends in {} s", std::chrono::duration_cast<std::chrono::seconds>(left).count());
  if (phase_ == Phase::kIntroduced || phase_ == Phase::kActive) {
    const auto grace = std::chrono::duration_cast<Millis>(left) - kExitTime;
    on(StopRequested{reason, std::max(grace, Millis(0))});
  } else {
    exit(true, {ErrorCode::kShuttingDown, "left: " + reason});
  }
}

void VolunteerCore::on(const PauseRequested& event) {
  if (leave_ && leave_->is_final) return;
  Pause pause{event.reason, now_ + event.keep, event.grace, true};
  if (pause_) {
    pause.hand_over_at = std::min(pause.hand_over_at, pause_->hand_over_at);
    pause.grace = std::min(pause.grace, pause_->grace);
    pause.keeps_shards = pause_->keeps_shards;
  }
  pause_ = std::move(pause);
  if (leave_) leave_->by = std::min(leave_->by, now_ + pause_->grace);
  if (phase_ == Phase::kRetrying) {
    phase_ = Phase::kResting;
    phase_since_ = now_;
  }
  if (phase_ == Phase::kActive) say_heartbeat(0);
  end_pause_in_time();
}

void VolunteerCore::on(const ResumeRequested&) {
  if (!pause_) return;
  pause_.reset();
  if (phase_ == Phase::kActive && !leave_) say_heartbeat(0);
  if (phase_ != Phase::kResting) return;
  phase_ = Phase::kConnecting;
  phase_since_ = now_;
  effects_.emplace_back(Connect{});
}

void VolunteerCore::end_pause_in_time() {
  if (!pause_ || !pause_->keeps_shards || now_ < pause_->hand_over_at) return;
  if (phase_ == Phase::kActive) {
    pause_->keeps_shards = false;
    if (leave_) return;
    leave_ = Leave{now_ + pause_->grace, pause_->reason, false};
    say(Leaving{pause_->reason});
  } else if (phase_ == Phase::kResting) {
    stop_keeping();
  }
}

void VolunteerCore::stop_keeping() {
  if (pause_) pause_->keeps_shards = false;
  kept_.clear();
  kept_shards_.clear();
  queue_work(Forget{});
}

void VolunteerCore::on(const Tick&) {
  leave_in_time();
  end_pause_in_time();
  if (leave_ && now_ >= leave_->by) {
    if (leave_->is_final) {
      exit(true, {ErrorCode::kShuttingDown, "left without handing over: the master took too long"});
    } else if (phase_ == Phase::kActive) {
      hang_up(ErrorCode::kShuttingDown, "paused without handing over: it took too long");
    }
    if (phase_ == Phase::kDone) return;
  }
  switch (phase_) {
    case Phase::kRetrying:
      if (!(kept_.empty() && kept_shards_.empty()) && now_ - last_met_ >= config_.keep_alone) {
        stop_keeping();
      }
      if (config_.give_up && now_ - last_met_ >= *config_.give_up) {
        exit(false, {ErrorCode::kIo, fmt::format("no master for {} s, so it gives up: {}",
                                                 config_.give_up->count() / 1000, why_)});
      } else if (now_ >= next_attempt_) {
        phase_ = Phase::kConnecting;
        phase_since_ = now_;
        effects_.emplace_back(Connect{});
      }
      break;
    case Phase::kIntroduced:
      if (now_ - phase_since_ >= config_.welcome_deadline) {
        hang_up(ErrorCode::kProtocol, std::string("the master did not answer") + kLargePackets);
      }
      break;
    case Phase::kActive:
      last_met_ = now_;
      if (!wants_more()) last_heard_ = now_;  // what the master says is not read
      if (now_ - last_heard_ >= silence_) {
        hang_up(ErrorCode::kIo, explain_end(explain_silence()));
      } else if (now_ - last_said_ >= heartbeat_) {
        say_heartbeat(0);
      }
      break;
    case Phase::kClosing:
      // The close itself may hang on a peer that is gone.
      if (now_ - phase_since_ >= config_.welcome_deadline) retry_later(why_);
      break;
    case Phase::kResting:
      last_met_ = now_;  // it does not look for the master
      break;
    case Phase::kConnecting:
    case Phase::kFinished:
    case Phase::kDone:
      break;
  }
}

// The core as the status line shows it.

std::pair<Snapshot::Phase, std::string> VolunteerCore::active_view() const {
  using Shown = Snapshot::Phase;
  if (leave_) {
    return {Shown::kLeaving,
            fmt::format("handing over {} before {}", counted(shards_.size(), "shard"),
                        (leave_->is_final ? "leaving: " : "it rests: ") + leave_->reason)};
  }
  const std::string waits_for = news_ ? news_->waiting_for : "";
  if (!shards_.empty()) {
    return {Shown::kTraining, waits_for.empty()
                                  ? "training"
                                  : "holding its shards; the master waits for " + waits_for};
  }
  if (!loads_.empty()) {
    const bool all_kept = std::all_of(loads_.begin(), loads_.end(),
                                      [](const auto& load) { return load.second.grant.is_held; });
    if (!all_kept) return {Shown::kLoading, "loading " + counted(loads_.size(), "shard")};
    return {Shown::kLoading,
            fmt::format("stepped back to checkpoint {} with {} it kept; nothing to download",
                        offer_checkpoint_, counted(kept_shards_.size(), "shard"))};
  }
  if (!kept_shards_.empty()) {
    return {Shown::kWaiting, fmt::format("offering the master {} as of checkpoint {}",
                                         counted(kept_shards_.size(), "shard"), offer_checkpoint_)};
  }
  if (news_ && !news_->no_shards.empty()) return {Shown::kWaiting, "waiting: " + news_->no_shards};
  return {Shown::kWaiting, waits_for.empty() ? "waiting for the master to lend a shard"
                                             : "waiting: the master waits for " + waits_for};
}

std::string VolunteerCore::retry_sentence() const {
  if (why_.empty()) return fmt::format("will try {}", config_.master);
  if (is_unreached_) return fmt::format("cannot reach {} yet: {}", config_.master, why_);
  return fmt::format("will try {} again: {}", config_.master, why_);
}

Snapshot VolunteerCore::snapshot() const {
  Snapshot view;
  view.shards.assign(shards_.begin(), shards_.end());
  view.loading = static_cast<std::uint32_t>(loads_.size());
  view.units = units_;
  view.examples = examples_;
  view.downloaded_bytes = downloaded_bytes_;
  view.news = news_;
  view.service = service_;
  view.thanks = thanks_;
  view.thanks_refused = thanks_refused_;
  view.run = run_;
  view.purpose = purpose_;
  using Shown = Snapshot::Phase;
  switch (phase_) {
    case Phase::kRetrying:
    case Phase::kClosing:
      view.phase = Shown::kRetrying;
      view.sentence = retry_sentence();
      break;
    case Phase::kConnecting:
      view.phase = Shown::kConnecting;
      view.sentence = "connecting to " + config_.master;
      break;
    case Phase::kDone:
      view.phase = Shown::kExiting;
      view.sentence = why_;
      break;
    case Phase::kIntroduced:
      view.phase = Shown::kWaiting;
      view.sentence = "waiting for the master's answer";
      break;
    case Phase::kFinished:
      view.phase = Shown::kFinished;
      view.sentence = kThanks;
      break;
    case Phase::kResting:
      break;  // below
    case Phase::kActive:
      view.is_connected = true;
      std::tie(view.phase, view.sentence) = active_view();
      break;
  }
  if (pause_ && !leave_ && phase_ != Phase::kDone && phase_ != Phase::kFinished) {
    view.phase = Shown::kPaused;
    view.sentence = pause_->reason;
  }
  return view;
}

}  // namespace gleaner::volunteer
