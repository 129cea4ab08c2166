// A whole cluster in one process, from one seed: the real master's core, worker and store logic,
// the real volunteers' cores and executors, and a simulated clock, network and disk between them.
// Equal options give equal events, to the last one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/time.hpp"
#include "master/core/core_config.hpp"
#include "master/core/reports.hpp"
#include "schema/messages.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/run_store.hpp"
#include "tests/sim/fault_plan.hpp"
#include "tests/sim/network/network.hpp"
#include "tests/sim/network/sim_log.hpp"
#include "volunteer/core/volunteer_core.hpp"

namespace gleaner::sim {

class Workload;

// The power fails at one write to the store.
struct CrashPoint {
  std::uint64_t write = 0;  // counted from 0
  MemoryStore::FailedWrite outcome = MemoryStore::FailedWrite::kDropped;
};

// The results of a calm run of the same model, to compare with.
struct Expected {
  std::map<RoundIndex, std::string> digests;  // of every checkpoint, by number
  // The digest of every batch's whole gradient, by the number of rate cuts before it was trained.
  std::map<std::pair<std::size_t, BatchIndex>, std::uint64_t> gradient_digests;
};

// Short deadlines and small pieces, so that rare paths are common.
CoreConfig impatient_master();
volunteer::VolunteerCoreConfig impatient_volunteer();

// Untrusted volunteers, each by an invite of its own: their work is audited.
struct Strangers {
  bool are_there = false;     // else every volunteer is trusted
  std::uint32_t trusted = 0;  // the last volunteers, which stay trusted
  std::uint32_t liars = 0;    // the first strangers lie
  std::string lie;            // a name of lies.hpp; empty: each liar draws one
  std::uint64_t one_in = 1;   // one in N of the fitting messages is false
  double rounds = 1;          // the fraction of the rounds in which a liar lies
  // A refused liar comes again with another key, until the master suspends its invite.
  bool come_again = false;
  // Whether the last stranger withholds the message, from `withholds_from` on. The function may
  // change a message that passes. Empty: nobody withholds.
  std::function<bool(Message&)> withholds;
  Millis withholds_from{0};
};

// The number of present volunteers, from a time on.
struct Presence {
  Millis from{0};
  std::uint32_t volunteers = 0;
  bool is_told = false;  // the kernels of leavers close connections, as at a shutdown
};

// Relays for the volunteers; every fourth volunteer connects to the master itself.
struct Relays {
  std::uint32_t count = 0;
  Millis life{0};                                 // mean time until one is killed; 0: never
  LinkShape link{Micros(100), Micros(1'000), 0};  // of a volunteer to its relay
  std::uint64_t bytes_per_second = 0;             // of a relay's line to its volunteers; 0: any
  bool takes_all = false;                         // no volunteer connects to the master itself
  bool are_strangers = false;                     // each by an invite of its own
  std::string lie;  // of the first relay, a name of relay_lies.hpp; empty: none
};

struct ClusterOptions {
  ModelConfig model;
  std::uint64_t seed = 1;  // of network, timing and faults; never of the model
  std::uint32_t volunteers = 3;
  std::uint32_t join_spread_ms = 50;  // volunteers start within this
  std::uint32_t slowness_max = 4;     // time of the slowest volunteer over the fastest's
  CoreConfig master = impatient_master();
  volunteer::VolunteerCoreConfig volunteer = impatient_volunteer();
  std::size_t commit_part_rows = 4;  // commits come in parts of N rows; 0: not cut
  LinkShape link;
  bool has_steady_latency = false;            // drawn per volunteer instead of per message
  std::uint64_t master_bytes_per_second = 0;  // of the master's link; 0: any
  std::size_t send_queue_bytes_max = std::size_t{64} << 20;
  // A volunteer begins no work while its queue is longer.
  std::size_t volunteer_queue_bytes_max = std::size_t{32} << 20;
  Millis restart_after_most{4'000};  // a killed process starts again within this
  Strangers strangers;
  Relays relays;
  FaultPlan faults;
  // Arrivals and departures, ascending. Empty: all volunteers stay.
  std::vector<Presence> presence;
  Millis kill_one_at{0};                 // the first volunteer dies once; 0: never
  std::vector<CrashPoint> crash_points;  // in order, each counted from the crash before
  Millis heal_within{600'000};           // after the last fault the run must finish within this
  bool is_checked = true;                // by all checkers, which cost more than the run
  const Expected* expected = nullptr;
  TraceSink trace;

  [[nodiscard]] bool has_liars() const {
    return strangers.liars > 0 || strangers.withholds || !relays.lie.empty();
  }
};

// The end of a session, in the master's words.
struct Left {
  std::string who;  // its name, or its address before a Hello
  std::string why;
  Instant at{};
};

// The record of the stranger that withholds.
struct Withholder {
  std::vector<Instant> withheld;  // one per message
  std::vector<Instant> lent;      // one per shard, also on trial
};

struct ClusterResult {
  bool finished = false;
  Expected reached;
  std::uint64_t event_digest = 0;  // over all events, in order
  std::uint64_t events = 0;
  std::uint64_t writes = 0;  // to the store
  Millis duration{0};
  std::map<std::string, std::uint64_t> happened;  // faults, notices by kind: coverage marks
  std::vector<std::string> violations;            // invariants that broke
  std::vector<RoundRecord> history;
  std::vector<Instant> applied;  // times of batches, in every life of the master
  std::set<std::string> liars;   // tellers of a lie
  std::map<std::string, std::set<RoundIndex>> lied_in;  // by liar, the rounds of the lies
  std::set<std::string> convicted;                      // banned by the master
  std::set<std::string> banned;                         // banned by the owner
  std::uint64_t relayed_lies = 0;                       // messages that a relay made false
  std::set<std::string> sent_away;  // ended by the master's refusal of a message
  std::vector<Left> left;           // in order
  Withholder withholder;
};

// Runs until the master finishes, or something breaks an invariant.
ClusterResult run_cluster(const ClusterOptions& options, Workload& workload);

}  // namespace gleaner::sim
