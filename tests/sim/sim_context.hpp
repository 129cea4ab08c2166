// The shared parts of a simulated cluster, as references; the cluster owns them.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/counter_random.hpp"
#include "tests/sim/checkers/checker.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/network/network.hpp"
#include "tests/sim/network/sim_clock.hpp"
#include "tests/sim/network/sim_log.hpp"
#include "tests/sim/workload/workload.hpp"

namespace gleaner::sim {

inline constexpr Millis kTick{50};

// The standing of a trusted volunteer.
inline Standing trusted(const KeyId& identity) {
  return {identity, Role::kVolunteer, true, false, {}};
}

struct SimContext {
  const ClusterOptions& options;
  SimClock& clock;
  Rng& random;
  SimLog& log;
  Network& network;
  Workload& workload;
  std::vector<std::unique_ptr<Checker>>& checkers;

  Millis uniform(Millis low, Millis high) {
    return low + Millis(random.next_below(static_cast<std::uint64_t>((high - low).count()) + 1));
  }

  [[nodiscard]] Packet pack(Bytes payload, Lane lane) const {
    const std::size_t wire_bytes = workload.wire_bytes(payload);
    return {std::move(payload), wire_bytes, lane};
  }

  template <typename Tell>
  void tell_checkers(Tell tell) {
    for (const auto& checker : checkers) tell(*checker);
  }
};

}  // namespace gleaner::sim
