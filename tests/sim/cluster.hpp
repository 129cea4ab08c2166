// A whole cluster in one process, from one seed: the real master's core, worker and store logic,
// the real volunteers' cores and executors, and a simulated clock, network and disk between them.
// A run of the same options gives the same events, to the last one.
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

// Volunteers that nobody vouches for, each by an invite of its own: their work is audited.
struct Strangers {
  bool are_there = false;     // else every volunteer is trusted
  std::uint32_t trusted = 0;  // the last ones, who are none
  std::uint32_t liars = 0;    // how many of them lie, the first ones
  std::string lie;            // its name (see lies.hpp); empty: each liar draws one
  std::uint64_t one_in = 1;   // of the messages that the lie can be told in
  double rounds = 1;          // the fraction of the rounds in which a liar lies
  // A liar that was sent away comes again with another key, until the master suspends its invite.
  bool come_again = false;
  // Whether the last stranger keeps the message to itself; it may change what it lets pass. It does
  // so from `withholds_from` on. Empty: nobody withholds anything.
  std::function<bool(Message&)> withholds;
  Millis withholds_from{0};
};

// How many of the volunteers are there, from a time on.
struct Presence {
  Millis from{0};
  std::uint32_t volunteers = 0;
  bool is_told = false;  // by the kernels of those that go, as when an instance is shut down
};

// Relays, over which the volunteers are spread; every fourth one goes to the master all the same.
struct Relays {
  std::uint32_t count = 0;
  Millis life{0};                                 // one is killed after this, on average; 0: never
  LinkShape link{Micros(100), Micros(1'000), 0};  // of a volunteer to its relay
  std::uint64_t bytes_per_second = 0;             // of a relay's line to its volunteers; 0: any
  bool takes_all = false;                         // no volunteer goes to the master
  bool are_strangers = false;                     // each by an invite of its own
  std::string lie;  // that the first one tells (see relay_lies.hpp); empty: none does
};

struct ClusterOptions {
  ModelConfig model;
  std::uint64_t seed = 1;  // of network, timing and faults; never of the model
  std::uint32_t volunteers = 3;
  std::uint32_t join_spread_ms = 50;  // volunteers start within this
  std::uint32_t slowness_max = 4;     // slowest volunteer against the fastest
  CoreConfig master = impatient_master();
  volunteer::VolunteerCoreConfig volunteer = impatient_volunteer();
  std::size_t commit_part_rows = 4;  // commits come in parts of N rows; 0: as they are
  LinkShape link;
  bool has_steady_latency = false;            // drawn once a volunteer instead of once a message
  std::uint64_t master_bytes_per_second = 0;  // of the master's link; 0: any
  std::size_t send_queue_bytes_max = std::size_t{64} << 20;
  // A volunteer begins no work while more waits to be sent by it.
  std::size_t volunteer_queue_bytes_max = std::size_t{32} << 20;
  Millis restart_after_most{4'000};  // whoever died starts again within this
  Strangers strangers;
  Relays relays;
  FaultPlan faults;
  // How volunteers come and go, ascending. Empty: they all stay.
  std::vector<Presence> presence;
  Millis kill_one_at{0};                 // the first volunteer, once; 0: not at all
  std::vector<CrashPoint> crash_points;  // one after the other, each counted from the one before
  Millis heal_within{600'000};           // after the last fault the run must finish within this
  bool is_checked = true;                // by every checker; costs more than the run itself
  const Expected* expected = nullptr;
  TraceSink trace;

  [[nodiscard]] bool has_liars() const {
    return strangers.liars > 0 || strangers.withholds || !relays.lie.empty();
  }
};

// The end of a session, as the master tells it.
struct Left {
  std::string who;  // its address, if it had not introduced itself
  std::string why;
  Instant at{};
};

// The stranger that withholds.
struct Withholder {
  std::vector<Instant> withheld;  // a message each
  std::vector<Instant> lent;      // a shard each, also on trial
};

struct ClusterResult {
  bool finished = false;
  Expected reached;
  std::uint64_t event_digest = 0;  // of everything that happened, in order
  std::uint64_t events = 0;
  std::uint64_t writes = 0;  // to the store
  Millis duration{0};
  std::map<std::string, std::uint64_t> happened;  // faults, notices by kind: coverage marks
  std::vector<std::string> violations;            // invariants that broke
  std::vector<RoundRecord> history;
  std::vector<Instant> applied;  // when each batch was, in every life of the master
  std::set<std::string> liars;   // who told a lie
  std::map<std::string, std::set<RoundIndex>> lied_in;  // about rounds
  std::set<std::string> convicted;                      // whom the master banned
  std::set<std::string> banned;                         // whom its owner banned
  std::uint64_t relayed_lies = 0;                       // messages that a relay has made false
  std::set<std::string> sent_away;  // who ended since the master refused what it said
  std::vector<Left> left;           // in order
  Withholder withholder;
};

// Runs until the master finishes, or something breaks an invariant.
ClusterResult run_cluster(const ClusterOptions& options, Workload& workload);

}  // namespace gleaner::sim
