// What the status line is told.
#include <fmt/format.h>

#include <algorithm>

#include "common/counted.hpp"
#include "volunteer/core/volunteer_core.hpp"

namespace gleaner::volunteer {

Snapshot VolunteerCore::snapshot() const {
  Snapshot view;
  view.shards.assign(shards_.begin(), shards_.end());
  view.loading = static_cast<std::uint32_t>(loads_.size());
  view.units = units_;
  view.examples = examples_;
  view.downloaded_bytes = downloaded_bytes_;
  view.news = news_;
  using Shown = Snapshot::Phase;
  switch (phase_) {
    case Phase::kRetrying:
    case Phase::kClosing:
      view.phase = Shown::kRetrying;
      view.sentence = fmt::format("will try {} again: {}", config_.master, why_);
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
    case Phase::kResting:
      break;  // below
    case Phase::kActive:
      view.is_connected = true;
      if (leave_) {
        view.phase = Shown::kLeaving;
        view.sentence =
            fmt::format("handing over {} before {}", counted(shards_.size(), "shard"),
                        (leave_->is_final ? "leaving: " : "it rests: ") + leave_->reason);
      } else if (!shards_.empty()) {
        view.phase = Shown::kTraining;
        view.sentence = news_ && !news_->waiting_for.empty()
                            ? "holding its shards; the master waits for " + news_->waiting_for
                            : "training";
      } else if (!loads_.empty()) {
        view.phase = Shown::kLoading;
        const bool all_kept = std::all_of(loads_.begin(), loads_.end(), [](const auto& load) {
          return load.second.grant.is_held;
        });
        view.sentence =
            all_kept
                ? fmt::format("stepped back to checkpoint {} with {} it kept; nothing to download",
                              offer_checkpoint_, counted(kept_shards_.size(), "shard"))
                : "loading " + counted(loads_.size(), "shard");
      } else if (!kept_shards_.empty()) {
        view.phase = Shown::kWaiting;
        view.sentence = fmt::format("offering the master {} as of checkpoint {}",
                                    counted(kept_shards_.size(), "shard"), offer_checkpoint_);
      } else {
        view.phase = Shown::kWaiting;
        view.sentence = news_ && !news_->no_shards.empty() ? "waiting: " + news_->no_shards
                        : news_ && !news_->waiting_for.empty()
                            ? "waiting: the master waits for " + news_->waiting_for
                            : "waiting for the master to lend a shard";
      }
      break;
  }
  if (pause_ && !leave_ && phase_ != Phase::kDone) {
    view.phase = Shown::kPaused;
    view.sentence = "paused: " + pause_->reason;
  }
  return view;
}

}  // namespace gleaner::volunteer
