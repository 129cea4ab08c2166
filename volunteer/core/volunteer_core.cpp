#include "volunteer/core/volunteer_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gleaner::volunteer {

VolunteerCore::VolunteerCore(CoreConfig config)
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

// Ticks come a few times a second: nothing at all meanwhile, and the process was not running.
// Half of the silence, because the master counts from the last word before.
void VolunteerCore::notice_freeze(Instant now) {
  if (phase_ != Phase::kActive || now - now_ < silence_ / 2) return;
  freeze_ = Freeze{now - now_, now};
  last_heard_ = now;  // nobody listened
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
  phase_ = Phase::kConnecting;
  phase_since_ = now_;
  effects_.emplace_back(Connect{});
}

void VolunteerCore::on(const Connected&) {
  if (leave_by_) {
    exit(true, {ErrorCode::kShuttingDown, "stopped before it had work"});
    return;
  }
  ++generation_;
  phase_ = Phase::kIntroduced;
  phase_since_ = last_heard_ = now_;
  freeze_.reset();
  Hello hello = config_.hello;
  hello.memory_bytes >>= std::min(memory_halvings_, 63u);
  hello.kept_shards = static_cast<std::uint32_t>(kept_shards_.size());
  has_announced_ = !kept_shards_.empty();
  say(std::move(hello));
}

void VolunteerCore::on(const ConnectFailed& event) {
  pause(event.reason);
}

void VolunteerCore::on(const Disconnected& event) {
  if (phase_ == Phase::kPausing) return;
  const bool was_closing = phase_ == Phase::kClosing;
  if (event.is_starved) ++memory_halvings_;
  end_connection();
  pause(was_closing ? why_ : explain_end(event.reason));
}

void VolunteerCore::end_connection() {
  ++generation_;  // results of work still running are not wanted any more
  work_.clear();
  work_bytes_ = 0;
  replies_.clear();
  commit_parts_ = 0;
  for (auto& [shard, load] : loads_) {
    if (!load.base_chunks.empty()) {
      kept_[shard] = {load.grant.base_round, std::move(load.base_chunks)};
    }
  }
  loads_.clear();
  requested_.clear();
  kept_shards_.merge(shards_);
  shards_.clear();
  news_.reset();
}

void VolunteerCore::pause(std::string why) {
  if (leave_by_) {
    exit(true,
         {ErrorCode::kShuttingDown, "stopped; the master was not there to take over: " + why});
    return;
  }
  phase_ = Phase::kPausing;
  phase_since_ = now_;
  next_attempt_ = now_ + (kept_shards_.empty() ? backoff_ : keeping_backoff_).next();
  why_ = std::move(why);
}

void VolunteerCore::hang_up(ErrorCode code, std::string why) {
  say(Goodbye{code, why});
  effects_.emplace_back(Disconnect{});
  phase_ = Phase::kClosing;
  phase_since_ = now_;
  why_ = std::move(why);
  end_connection();
}

void VolunteerCore::exit(bool success, Error error) {
  end_connection();
  why_ = error.message;
  effects_.emplace_back(Exit{success, std::move(error)});
  phase_ = Phase::kDone;
}

void VolunteerCore::say(Message message) {
  last_said_ = now_;
  effects_.emplace_back(Send{std::move(message)});
}

// ---- Leaving and time --------------------------------------------------------------------------

void VolunteerCore::on(const StopRequested& event) {
  const bool is_connected = phase_ == Phase::kIntroduced || phase_ == Phase::kActive;
  if (leave_by_ || !is_connected) {
    exit(true, {ErrorCode::kShuttingDown, "stopped"});
    return;
  }
  leave_by_ = now_ + config_.leave_grace;
  leave_reason_ = event.reason;
  if (phase_ == Phase::kActive) say(Leaving{event.reason});
}

void VolunteerCore::on(const Tick&) {
  if (leave_by_ && now_ >= *leave_by_) {
    exit(true, {ErrorCode::kShuttingDown, "left without handing over: the master took too long"});
    return;
  }
  switch (phase_) {
    case Phase::kPausing:
      if (now_ >= next_attempt_) {
        phase_ = Phase::kConnecting;
        phase_since_ = now_;
        effects_.emplace_back(Connect{});
      }
      break;
    case Phase::kIntroduced:
      if (now_ - phase_since_ >= config_.welcome_deadline) {
        hang_up(ErrorCode::kProtocol, "the master did not answer");
      }
      break;
    case Phase::kActive:
      if (!wants_more()) last_heard_ = now_;  // what the master says is not read
      if (now_ - last_heard_ >= silence_) {
        hang_up(ErrorCode::kIo, explain_end(fmt::format("the master has been silent for {} s",
                                                        silence_.count() / 1000)));
      } else if (now_ - last_said_ >= heartbeat_) {
        say(Heartbeat{static_cast<std::uint64_t>(now_.time_since_epoch().count()), 0, {}});
      }
      break;
    case Phase::kClosing:
      // The close itself may hang on a peer that is gone.
      if (now_ - phase_since_ >= config_.welcome_deadline) pause(why_);
      break;
    case Phase::kConnecting:
    case Phase::kDone:
      break;
  }
}

}  // namespace gleaner::volunteer
