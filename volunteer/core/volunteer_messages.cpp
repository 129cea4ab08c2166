// Messages from the master, and the work to which they lead.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/model/run_plan.hpp"
#include "schema/delivery.hpp"
#include "schema/versions.hpp"
#include "volunteer/core/volunteer_core.hpp"

namespace gleaner::volunteer {
namespace {

// More work than a master within its limits has out with one volunteer.
constexpr std::size_t kWorkQueueMax = 8192;

std::uint64_t examples_of_round(const RunPlan& plan, RoundIndex round) {
  std::uint64_t examples = 0;
  for (BatchIndex batch = plan.round_begin(round); batch < plan.round_end(round); ++batch) {
    examples += plan.examples_in(batch);
  }
  return examples;
}

}  // namespace

void VolunteerCore::on(MessageReceived& event) {
  if (phase_ != Phase::kIntroduced && phase_ != Phase::kActive) return;
  last_heard_ = now_;
  message_bytes_ = event.bytes;
  const bool fits_introduction = std::holds_alternative<Welcome>(event.message) ||
                                 std::holds_alternative<Refusal>(event.message) ||
                                 std::holds_alternative<Goodbye>(event.message);
  if (phase_ == Phase::kIntroduced && !fits_introduction) {
    hang_up(ErrorCode::kProtocol,
            fmt::format("the master sent {} before Welcome", message_name(event.message)));
    return;
  }
  const Result<void> delivered =
      deliver<route::kDown>(event.message, [this](auto& message) { on_message(message); });
  if (!delivered) hang_up(delivered.error().code, delivered.error().message);
}

void VolunteerCore::on_message(Welcome& welcome) {
  if (phase_ != Phase::kIntroduced) {
    hang_up(ErrorCode::kProtocol, "the master sent a second Welcome");
    return;
  }
  if (welcome.protocol < kProtocolMin || welcome.protocol > kProtocolMax) {
    exit(false,
         {ErrorCode::kVersion,
          fmt::format("the master chose protocol {}, this program speaks {} to {}: update it",
                      welcome.protocol, kProtocolMin, kProtocolMax)});
    return;
  }
  if (auto valid = validate(welcome.model); !valid) {
    hang_up(ErrorCode::kProtocol, "the master's model is invalid: " + valid.error().message);
    return;
  }
  if (!model_ || *model_ != welcome.model) {
    kept_.clear();
    kept_shards_.clear();
    round_us_.clear();
  }
  std::erase_if(kept_, [&](const auto& kept) { return kept.second.epoch < welcome.first_epoch; });
  model_ = welcome.model;
  run_ = std::move(welcome.run);
  purpose_ = std::move(welcome.purpose);
  heartbeat_ = Millis(std::max(welcome.heartbeat_ms, 1u));
  silence_ = Millis(std::max(welcome.silence_ms, 1u));
  phase_ = Phase::kActive;
  welcomed_ = now_;
  phase_since_ = now_;
  backoff_.reset();
  keeping_backoff_.reset();
  offer_checkpoint_ = welcome.checkpoint;
  Reset reset{welcome.model};
  if (has_announced_) reset.checkpoint = welcome.checkpoint;
  reset.test_fingerprint = welcome.test_fingerprint;
  reset.generation = generation_;
  queue_work(std::move(reset));
  if (leave_) {
    say(Leaving{leave_->reason});
  } else if (pause_) {
    say_heartbeat(0);
    end_pause_in_time();
  }
}

void VolunteerCore::on_message(Refusal& refusal) {
  if (!refusal.retry) {
    exit(false, {refusal.code, "the master refused: " + refusal.sentence});
    return;
  }
  effects_.emplace_back(Disconnect{});
  phase_ = Phase::kClosing;
  phase_since_ = now_;
  why_ = explain_end("refused: " + refusal.sentence);
  end_connection();
}

void VolunteerCore::on_message(LeaseGrant& grant) {
  const ShardId shard = grant.lease.shard;
  if (grant.base_chunks > grant.chunks || grant.chunks > kPartsMax) {
    hang_up(ErrorCode::kProtocol,
            fmt::format("a lease of shard {} that makes no sense", raw(shard)));
    return;
  }
  forget_shard(shard);
  if (!grant.is_held) kept_shards_.erase(shard);
  Load load;
  load.grant = grant;
  for (std::uint32_t chunk = 0; chunk < grant.chunks; ++chunk) load.missing.insert(chunk);
  if (!queue_work(Message(std::move(grant)), message_bytes_)) return;
  std::erase_if(kept_, [&](const auto& kept) {
    return kept.second.base_round + kRoundsOpenMax < load.grant.base_round;
  });
  // Chunks of the same checkpoint from an earlier connection need not come again.
  const auto kept = kept_.find(shard);
  if (kept != kept_.end() && kept->second.base_round == load.grant.base_round) {
    for (auto& [chunk, rows] : kept->second.chunks) {
      if (chunk >= load.grant.base_chunks) continue;
      load.missing.erase(chunk);
      if (!queue_work(Message(ShardChunk{load.grant.lease, chunk, rows}))) return;
    }
    load.base_chunks = std::move(kept->second.chunks);
  }
  kept_.erase(shard);
  loads_[shard] = std::move(load);
  request_chunks();
}

void VolunteerCore::request_chunks() {
  for (auto& [shard, load] : loads_) {
    auto next = load.missing.lower_bound(load.next_request);
    while (next != load.missing.end() && requested_.size() < config_.chunks_in_flight) {
      say(ChunkRequest{load.grant.lease, *next});
      requested_.insert({shard, *next});
      load.next_request = *next + 1;
      ++next;
    }
  }
}

void VolunteerCore::on_message(ShardChunk& chunk) {
  const auto found = loads_.find(chunk.lease.shard);
  if (found == loads_.end() || found->second.grant.lease != chunk.lease) return;  // revoked
  Load& load = found->second;
  if (requested_.erase({chunk.lease.shard, chunk.chunk}) == 0) {
    hang_up(ErrorCode::kProtocol, fmt::format("the master sent chunk {} of shard {} unasked",
                                              chunk.chunk, raw(chunk.lease.shard)));
    return;
  }
  downloaded_bytes_ += message_bytes_;
  load.missing.erase(chunk.chunk);
  if (chunk.chunk < load.grant.base_chunks) load.base_chunks[chunk.chunk] = chunk.rows;
  if (!queue_work(Message(std::move(chunk)), message_bytes_)) return;
  request_chunks();
}

void VolunteerCore::on_message(ReleaseRequest& release) {
  queue_work(Message(release));
}

void VolunteerCore::on_message(Revoke& revoke) {
  forget_shard(revoke.lease.shard);
  kept_shards_.erase(revoke.lease.shard);
  if (!queue_work(Message(revoke))) return;
  // Chunks of other shards may have waited for the revoked shard's chunks.
  request_chunks();
}

void VolunteerCore::on_message(TrainUnit& unit) {
  if (is_wide(*model_)) {
    const RunPlan plan(*model_);
    for (const UnitBatch& first : unit.batches) {
      if (first.batch >= plan.batch_count()) continue;
      shard_examples_ += examples_of_round(plan, plan.round_of(first.batch));
    }
    examples_ += shard_examples_ / model_->output_shards;
    shard_examples_ %= model_->output_shards;
  } else {
    for (const UnitBatch& batch : unit.batches) {
      examples_ += std::max<std::size_t>(batch.positives.offsets.size(), 1) - 1;
    }
  }
  queue_work(Message(std::move(unit)), message_bytes_);
}

void VolunteerCore::on_message(EvalUnit& unit) {
  queue_work(Message(std::move(unit)), message_bytes_);
}

void VolunteerCore::on_message(InputUnit& unit) {
  queue_work(Message(std::move(unit)), message_bytes_);
}

void VolunteerCore::on_message(Points& points) {
  downloaded_bytes_ += message_bytes_;
  queue_work(Message(std::move(points)), message_bytes_);
}

void VolunteerCore::on_message(CommitCredit& credit) {
  if (credit.parts > commit_parts_) {
    hang_up(ErrorCode::kProtocol,
            fmt::format("the master gave credit for {} parts of commits, and {} were on their way",
                        credit.parts, commit_parts_));
    return;
  }
  commit_parts_ -= credit.parts;
  send_replies();
}

void VolunteerCore::on_message(Heartbeat& heartbeat) {
  if (heartbeat.news) {
    time_round(heartbeat.news->round);
    news_ = std::move(heartbeat.news);
  }
  const auto echoed = Instant(Micros(static_cast<std::int64_t>(heartbeat.echoed_us)));
  if (freeze_ && echoed >= freeze_->end) freeze_.reset();  // the session has survived it
  // At once, so that the master can measure the round trip.
  say_heartbeat(heartbeat.echo_us);
}

void VolunteerCore::take_thanks(const SignedThanks& thanks) {
  if (!config_.master_key) return;
  const Result<void> fit = check(thanks, *config_.master_key, config_.own_key);
  thanks_refused_ = fit ? "" : fit.error().message;
  if (fit) thanks_ = thanks;
}

void VolunteerCore::on_message(Goodbye& goodbye) {
  if (goodbye.thanks) take_thanks(*goodbye.thanks);
  if (leave_ && leave_->is_final) {
    exit(true, {ErrorCode::kShuttingDown, "left: " + goodbye.sentence});
    return;
  }
  if (goodbye.code == ErrorCode::kFinished) {
    end_connection();
    service_ = Service{served_, examples_};
    if (thanks_ && thanks_->thanks.is_finished) {
      const Thanks& signed_by_master = thanks_->thanks;
      service_ = Service{std::chrono::seconds(signed_by_master.seconds), signed_by_master.examples,
                         signed_by_master.checked};
    }
    if (config_.once) {
      exit(true, {ErrorCode::kFinished, kThanks});
      return;
    }
    effects_.emplace_back(Disconnect{});
    phase_ = Phase::kFinished;
    stop_keeping();
    return;
  }
  effects_.emplace_back(Disconnect{});
  phase_ = Phase::kClosing;
  phase_since_ = now_;
  why_ = goodbye.sentence;
  end_connection();
}

// ---- Work --------------------------------------------------------------------------------------

bool VolunteerCore::queue_work(Work work, std::size_t bytes) {
  if (work_.size() >= kWorkQueueMax) {
    hang_up(ErrorCode::kBusy, "the master sends work faster than it can be done");
    return false;
  }
  work_.push_back({std::move(work), bytes});
  work_bytes_ += bytes;
  start_work();
  return true;
}

void VolunteerCore::start_work() {
  if (is_working_ || work_.empty()) return;
  is_working_ = true;
  work_bytes_ -= work_.front().bytes;
  effects_.emplace_back(StartWork{generation_, std::move(work_.front().work)});
  work_.pop_front();
}

void VolunteerCore::on(WorkDone& event) {
  is_working_ = false;
  take(event.generation, event.replies, event.error);
  start_work();
}

void VolunteerCore::on(LaneDone& event) {
  take(event.generation, event.replies, event.error);
}

void VolunteerCore::take(std::uint64_t generation, std::vector<Message>& replies,
                         const std::optional<Error>& error) {
  if (generation != generation_ || phase_ != Phase::kActive) return;
  if (error) {
    if (error->code == ErrorCode::kResources) ++memory_halvings_;
    hang_up(error->code, error->message);
    return;
  }
  for (Message& reply : replies) {
    if (const auto* ready = std::get_if<ShardReady>(&reply)) {
      shards_.insert(ready->lease.shard);
      kept_shards_.erase(ready->lease.shard);
      loads_.erase(ready->lease.shard);
    } else if (const auto* offer = std::get_if<ShardOffer>(&reply)) {
      kept_shards_.clear();
      for (const OfferedShard& shard : offer->shards) kept_shards_.insert(shard.lease.shard);
    } else if (const auto* gone = std::get_if<HandOver>(&reply)) {
      forget_shard(gone->lease.shard);
    } else if (std::holds_alternative<UnitResult>(reply) ||
               std::holds_alternative<InputResult>(reply)) {
      ++units_;
    }
    send_in_order(std::move(reply));
  }
}

void VolunteerCore::send_in_order(Message message) {
  if (lane_of(message) == Lane::kUrgent) {
    say(std::move(message));
    return;
  }
  replies_.push_back(std::move(message));
  send_replies();
}

void VolunteerCore::send_replies() {
  while (!replies_.empty()) {
    if (std::holds_alternative<ShardCommit>(replies_.front())) {
      if (commit_parts_ >= config_.commit_parts_in_flight) return;
      ++commit_parts_;
    }
    say(std::move(replies_.front()));
    replies_.pop_front();
  }
}

void VolunteerCore::forget_shard(ShardId shard) {
  shards_.erase(shard);
  loads_.erase(shard);
  requested_.erase(requested_.lower_bound({shard, 0}),
                   requested_.upper_bound({shard, ~std::uint32_t{0}}));
}

}  // namespace gleaner::volunteer
