// The status line's view of the core.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "common/counted.hpp"
#include "volunteer/core/volunteer_core.hpp"

namespace gleaner::volunteer {

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
