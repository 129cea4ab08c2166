// Nothing grows without bound: the replay log, the input layer's steps, units out with a volunteer,
// chunks being read for it, parts of its commits that wait for the store, work that waits at it,
// bytes that wait on a connection.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tests/sim/checkers/checker.hpp"

namespace gleaner::sim {
namespace {

constexpr std::size_t kChunksInFlightMax = 16;
constexpr std::size_t kInputStepsMax = 8;                   // of a unit
constexpr std::size_t kPointsMessagesMax = 32;              // that a volunteer has asked for
constexpr std::size_t kFrameSlack = std::size_t{64} << 10;  // one frame of these small runs

class BoundsChecker : public Checker {
 public:
  BoundsChecker(SimLog& log, const ClusterOptions& options) : Checker(log), options_(options) {
    const std::size_t units = options.master.batches_per_unit_max;
    const std::size_t lag = options.model.staleness + std::size_t{1};
    // Enough for the lag or two units, as much again over a round trip, and the unit that fills it.
    batches_most_ = std::max(lag, 2 * units) + 2 * units + units;
    // A shard-round counts as one: one a thread, one more, and what a long link takes; and as many
    // of leases that have ended.
    if (is_wide(options.model)) batches_most_ = 12;
    // Twice the lag, a unit, and the unit that fills it.
    steps_most_ = 2 * lag + 2 * kInputStepsMax;
    const std::size_t shards = options.model.output_shards;
    const std::size_t rows = options.model.labels;
    // Units; scoring; loading a shard again from chunks that were kept; releases and revokes.
    work_most_ = batches_most_ + steps_most_ + kPointsMessagesMax +
                 options.master.evaluate_chunks_in_flight * shards + 4 * shards + rows +
                 options.volunteer.chunks_in_flight;
  }

  void master_started(const ResumePoint&, const CoreConfig& config) override {
    chunks_ = (config.test_points + config.evaluate_chunk - 1) / config.evaluate_chunk;
  }

  void master_gone() override { sessions_.clear(); }

  void event(const Event& event) override {
    if (const auto* closed = std::get_if<SessionClosed>(&event)) sessions_.erase(closed->session);
    if (const auto* read = std::get_if<ChunkRead>(&event)) {
      const auto session = sessions_.find(read->session);
      if (session != sessions_.end()) --session->second.chunks;
    }
    if (const auto* staged = std::get_if<Staged>(&event)) {
      const auto session = sessions_.find(staged->session);
      if (session != sessions_.end()) --session->second.parts;
    }
    const auto* received = std::get_if<MessageReceived>(&event);
    if (received == nullptr) return;
    const auto session = sessions_.find(received->session);
    if (session == sessions_.end()) return;
    if (const auto* result = std::get_if<UnitResult>(&received->message)) {
      session->second.units.erase(result->unit);
    }
    if (const auto* result = std::get_if<InputResult>(&received->message)) {
      session->second.input_units.erase(result->unit);
    }
  }

  void effect(const Effect& effect) override {
    if (const auto* close = std::get_if<CloseSession>(&effect)) sessions_.erase(close->session);
    if (const auto* send = std::get_if<Send>(&effect)) {
      Session& session = sessions_[send->session];
      if (const auto* unit = std::get_if<TrainUnit>(&send->message)) {
        session.units[unit->unit] = unit->batches.size();
        std::size_t batches = 0;
        for (const auto& [id, size] : session.units) batches += size;
        bound("batches out with one volunteer", batches, batches_most_);
      }
      if (const auto* unit = std::get_if<InputUnit>(&send->message)) {
        session.input_units[unit->unit] = unit->steps.size();
        std::size_t steps = 0;
        for (const auto& [id, size] : session.input_units) steps += size;
        bound("input steps out with one volunteer", steps, steps_most_);
      }
    }
    if (const auto* task = std::get_if<StorageTask>(&effect)) {
      if (const auto* read = std::get_if<ReadChunkTask>(task)) {
        bound("chunks being read for one volunteer", ++sessions_[read->session].chunks,
              kChunksInFlightMax);
      }
      if (const auto* stage = std::get_if<StageTask>(task);
          stage && stage->session != SessionId{}) {
        bound("parts of one volunteer's commits that wait for the store",
              ++sessions_[stage->session].parts, options_.volunteer.commit_parts_in_flight);
      }
    }
  }

  void state(const MasterCore& core) override {
    const std::size_t batches = std::size_t{2} * options_.model.round_batches;
    bound("batches in the replay log", core.pipeline().log_size(), batches);
    if (!core.input_stream()) return;
    // A forward pass and an update a batch, and an evaluation.
    bound("steps of the input layer", core.input_stream()->size(), 2 * batches + chunks_);
  }

  void work_waiting(std::size_t pieces) override {
    bound("work that waits at a volunteer", pieces, work_most_);
  }

  void bytes_waiting(std::size_t bytes) override {
    bound("bytes that wait on a connection", bytes, options_.send_queue_bytes_max + kFrameSlack);
  }

 private:
  struct Session {
    std::map<UnitId, std::size_t> units;        // batches of each that is out
    std::map<UnitId, std::size_t> input_units;  // steps of each that is out
    std::size_t chunks = 0;
    std::size_t parts = 0;
  };

  void bound(const char* what, std::size_t value, std::size_t most) {
    if (value > most) fail(fmt::format("bounds: {} {}, at most {}", value, what, most));
  }

  const ClusterOptions& options_;
  std::size_t batches_most_ = 0;
  std::size_t steps_most_ = 0;
  std::size_t work_most_ = 0;
  std::size_t chunks_ = 0;  // of an evaluation
  std::map<SessionId, Session> sessions_;
};

}  // namespace

std::unique_ptr<Checker> make_bounds_checker(SimLog& log, const ClusterOptions& options) {
  return std::make_unique<BoundsChecker>(log, options);
}

}  // namespace gleaner::sim
