// The state of the run for people and tools. Reads the classes of the core and changes none of
// them. Owns only the time of the run's last progress. Used from the core only.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "master/core/audits/audits.hpp"
#include "master/core/placement.hpp"
#include "master/core/rounds.hpp"

namespace gleaner {

class RunView {
 public:
  // Facts about this start of the run.
  struct Life {
    Instant born{};           // of the first event
    bool is_started = false;  // `min_volunteers` have been here
    bool is_done = false;
    bool goes_on = false;  // once this core is done, in another core of this process
    bool has_called_referee = false;
  };

  // All but `life_number` outlive the view. `life_number` tells which start of the run this is.
  RunView(const RunSetup& run, const Outbox& outbox, const Life& life, const Sessions& sessions,
          const Placement& placement, const Audits& audits, const Pipeline& pipeline,
          const std::optional<InputStream>& input, const std::optional<ShardRounds>& shard_rounds,
          const Evaluations& evaluations, const RoundMeter& meter, const Rounds& rounds,
          LeaseEpoch life_number)
      : run_(run),
        outbox_(outbox),
        life_(life),
        sessions_(sessions),
        placement_(placement),
        leases_(placement.leases()),
        audits_(audits),
        pipeline_(pipeline),
        input_(input),
        shard_rounds_(shard_rounds),
        evaluations_(evaluations),
        meter_(meter),
        rounds_(rounds),
        life_number_(life_number) {}

  // Lacks speeds, which the shell measures, as status() does.
  [[nodiscard]] RunProgress progress() const;
  // The whole status, for tools. Fields that only the shell can fill in are not measured.
  [[nodiscard]] RunStatus status() const;
  // The news that heartbeats carry to every volunteer.
  [[nodiscard]] RunNews news() const;

  // To be called after every event: notes the time of the run's last progress.
  void note_progress();

 private:
  // One thing that the run waits for.
  struct Wait {
    WaitOwner owner = WaitOwner::kNobody;
    std::string what;
    Instant since{};
    bool is_step = false;  // of normal work; any other wait holds the run up
  };

  [[nodiscard]] Wait wait() const;
  // Why free shards wait, and for whom.
  [[nodiscard]] Wait wait_for_holders() const;
  // The step that has been due for longest, and who owes it.
  [[nodiscard]] Wait next_step() const;
  [[nodiscard]] Wait next_step_of_round() const;
  [[nodiscard]] Wait next_shard_round() const;
  [[nodiscard]] Wait step(WaitOwner owner, std::string what) const;
  [[nodiscard]] bool is_held_up(const Wait& wait) const;
  [[nodiscard]] std::string waiting_for() const;
  [[nodiscard]] std::string names_of_holders(const std::vector<ShardId>& shards) const;
  [[nodiscard]] std::uint64_t age_us(Instant since) const;
  [[nodiscard]] ShardEntry shard_status(const ShardLease& lease,
                                        const std::map<SessionId, std::uint32_t>& places) const;
  [[nodiscard]] std::string paused_for(const SessionState& session) const;
  [[nodiscard]] VolunteerEntry volunteer_status(SessionId id, const SessionState& session) const;
  // Fills in what a volunteer's owner wants to know before it joins.
  void tell_lenders(RunStatus& view) const;

  const RunSetup& run_;
  const Outbox& outbox_;
  const Life& life_;
  const Sessions& sessions_;
  const Placement& placement_;
  const LeaseTable& leases_;
  const Audits& audits_;
  const Pipeline& pipeline_;
  const std::optional<InputStream>& input_;
  const std::optional<ShardRounds>& shard_rounds_;
  const Evaluations& evaluations_;
  const RoundMeter& meter_;
  const Rounds& rounds_;
  const LeaseEpoch life_number_;

  Instant last_step_{};
  std::uint64_t steps_ = 0;  // the run's progress at last_step_
};

}  // namespace gleaner
