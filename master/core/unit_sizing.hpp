// How large a volunteer's next unit is, and how much it may have outstanding, by its measured
// speed. None of it changes a number of the model. Pure; used from the core only.
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

  // Batches of a unit that begins at `first`, on a number of `shards` of the volunteer's.
  [[nodiscard]] std::uint32_t batches(const SessionState& session, BatchIndex first,
                                      std::size_t shards) const;

  // Whether a unit of live batches should wait for more to join it: units grow as far as the lag
  // and the volunteer's time allow, while what it has in hand lasts. `ready` is the number of
  // output shards that the volunteer trains.
  [[nodiscard]] bool is_early(const SessionState& session, const UnitInFlight& unit,
                              std::size_t ready) const;

  // Batches that a holder of `held` output shards may have outstanding.
  [[nodiscard]] std::uint32_t batches_in_flight_max(const SessionState& session,
                                                    std::size_t held) const;

  // Takes what a result tells about the volunteer's speed and link. `examples` are those of its
  // batches; `now` is when it arrived.
  static void measure(SessionState& session, const UnitInFlight& unit, std::uint64_t examples,
                      std::uint64_t compute_us, Instant now);

 private:
  const RunSetup& run_;
  const Pipeline& pipeline_;
};

}  // namespace gleaner
