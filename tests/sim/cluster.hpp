// A whole cluster in one process, from one seed: the real master's core, worker and store logic,
// the real volunteers' cores and executors, and a simulated clock, network and disk between them.
// Messages cross the network as bytes. A run of the same seed gives the same events, to the last
// one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/model_config.hpp"
#include "common/time.hpp"
#include "master/core/records.hpp"
#include "storage/run_store.hpp"

namespace gleaner::sim {

// What goes wrong, and how often; all zero is a calm run. Times are simulated.
struct Faults {
  Millis until{0};                   // none begins after this
  Millis reset_every{0};             // mean time between connections cut
  Millis volunteer_crash_every{0};   // mean time between volunteers killed (and started again)
  Millis volunteer_freeze_every{0};  // mean time between volunteers frozen for longer than allowed
  Millis volunteer_leave_every{0};   // mean time between polite leaves (and new starts)
  Millis master_crash_every{0};      // mean time between losses of power at the master
  Millis master_stop_every{0};       // mean time between polite stops of the master
};

struct ClusterOptions {
  ModelConfig model;
  std::uint64_t seed = 1;  // of network, timing and faults; never of the model
  std::uint32_t volunteers = 3;
  std::uint32_t join_spread_ms = 50;  // volunteers start within this
  Millis latency_min{1};
  Millis latency_max{20};
  std::uint32_t slowness_max = 4;  // slowest volunteer against the fastest
  Millis rejoin_grace{500};        // of the master, see CoreConfig
  Faults faults;
  Millis give_up_after{3'600'000};
};

struct ClusterResult {
  bool finished = false;
  std::map<RoundIndex, std::string> digests;  // of every checkpoint, by number
  std::uint64_t event_digest = 0;             // of everything that happened, in order
  std::uint64_t events = 0;
  Millis duration{0};
  Evaluation evaluation;
  std::map<std::string, std::uint64_t> happened;  // faults, notices by kind: coverage marks
  std::vector<std::string> violations;            // invariants that broke
  std::vector<HistoryRecord> history;
};

// Runs until the master finishes. `train` and `test` outlive the call.
ClusterResult run_cluster(const ClusterOptions& options, const PackedDataset& train,
                          const PackedDataset& test);

}  // namespace gleaner::sim
