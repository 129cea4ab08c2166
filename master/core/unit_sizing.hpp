// Sizes a volunteer's next unit and its outstanding work, by its measured speed. Never changes a
// number of the model. Pure; used from the core only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "master/core/core_config.hpp"
#include "master/core/pipeline.hpp"
#include "master/core/session.hpp"

namespace gleaner {

class UnitSizing {
 public:
  // Both outlive it.
  UnitSizing(const RunSetup& run, const Pipeline& pipeline) : run_(run), pipeline_(pipeline) {}

  // Batches of a unit that begins at `first` and covers `shards` of the volunteer's shards.
  [[nodiscard]] std::uint32_t batches(const SessionState& session, BatchIndex first,
                                      std::size_t shards) const;

  // Whether a unit should wait for further batches to join it. Units grow as far as the lag allows
  // while the volunteer still has work in hand. `ready` is the number of output shards that the
  // volunteer trains.
  [[nodiscard]] bool is_early(const SessionState& session, const UnitInFlight& unit,
                              std::size_t ready) const;

  // Batches that a holder of `held` output shards may have outstanding.
  [[nodiscard]] std::uint32_t batches_in_flight_max(const SessionState& session,
                                                    std::size_t held) const;

  // Updates the volunteer's measured speed and link from a result, which arrived at `now` and has
  // `examples` in its batches.
  static void measure(SessionState& session, const UnitInFlight& unit, std::uint64_t examples,
                      std::uint64_t compute_us, Instant now);

 private:
  const RunSetup& run_;
  const Pipeline& pipeline_;
};

}  // namespace gleaner
