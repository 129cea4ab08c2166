#include "master/see/page_view.hpp"

#include <algorithm>

namespace gleaner {
namespace {

constexpr Millis kGapMax{60'000};

bool is_moving(const ShardEntry& shard) {
  return shard.state != LeaseState::kReady;
}

// Whether every shard has been sent the last batch of a round, and none a later batch.
bool is_draining(const RunStatus& s, const RunPlan& plan) {
  const BatchIndex batch = s.progress.batch;
  if (batch == 0 || !plan.is_round_end(batch)) return false;
  if (s.progress.round >= plan.round_of(batch - 1) + 1) return false;
  return std::ranges::all_of(s.shards, [&](const ShardEntry& e) { return e.next_batch == batch; });
}

}  // namespace

std::string_view time_use_name(TimeUse use) {
  constexpr std::array<std::string_view, kTimeUses> kNames = {
      "training", "master", "late", "replay", "moving", "commit", "store", "evaluation", "nobody"};
  return kNames[static_cast<std::size_t>(use)];
}

std::string_view time_use_text(TimeUse use) {
  constexpr std::array<std::string_view, kTimeUses> kTexts = {
      "volunteers train", "the master computes",    "late results", "shards replay",  "shards move",
      "commits",          "the store, or its disk", "evaluation",   "nobody is there"};
  return kTexts[static_cast<std::size_t>(use)];
}

TimeUse time_use(const RunStatus& s, const RunPlan& plan) {
  if (s.progress.stage == RunStage::kWaiting) return TimeUse::kNobody;
  if (s.wait_owner == WaitOwner::kStore) return TimeUse::kStore;
  if (s.is_held_up && std::ranges::any_of(s.shards, is_moving)) return TimeUse::kMoving;
  if (s.progress.stage == RunStage::kEvaluating) return TimeUse::kEvaluation;
  if (s.wait_owner == WaitOwner::kMaster) return TimeUse::kMaster;
  if (s.wait_owner != WaitOwner::kVolunteers) return TimeUse::kTraining;
  const bool is_behind = std::ranges::any_of(s.shards, [&](const ShardEntry& e) {
    return e.state == LeaseState::kReady && e.next_batch < s.progress.batch;
  });
  if (is_behind) return TimeUse::kReplay;
  if (is_draining(s, plan)) return TimeUse::kCommit;
  return s.is_held_up ? TimeUse::kLate : TimeUse::kTraining;
}

void TimeSpent::observe(TimeUse use, Instant now) {
  const Micros since = now - last_;
  const bool is_first = last_ == Instant{};
  last_ = now;
  if (is_first || since <= Micros(0) || since > kGapMax) return;
  const double seconds = static_cast<double>(since.count()) / 1e6;
  const auto place = static_cast<std::size_t>(use);
  all_[place] += seconds;
  moments_.push_back({now, use, seconds});
  while (now - moments_.front().at > kRecent) moments_.pop_front();
  recent_ = {};
  for (const Moment& moment : moments_) {
    recent_[static_cast<std::size_t>(moment.use)] += moment.seconds;
  }
}

}  // namespace gleaner
