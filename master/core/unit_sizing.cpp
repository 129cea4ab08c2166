#include "master/core/unit_sizing.hpp"

#include <algorithm>

#include "common/limits.hpp"

namespace gleaner {
namespace {

// The microseconds that the session's volunteer needs for some examples on some shards, by its
// measured speed.
double expected_us(const SessionState& session, std::uint32_t examples, std::size_t shards) {
  return static_cast<double>(examples) * static_cast<double>(shards) * 1e6 / session.speed;
}

}  // namespace

std::uint32_t UnitSizing::batches(const SessionState& session, BatchIndex first,
                                  std::size_t shards) const {
  if (session.speed <= 0) return 1;
  const double cells = static_cast<double>(run_.model.batch_examples) * run_.model.hidden;
  const double batch_us = expected_us(session, pipeline_.at(first).examples, shards);
  const double fitting = static_cast<double>(run_.config.unit_target.count()) / batch_us;
  const double most =
      std::clamp(kUnitCellsMax / cells, 1.0, static_cast<double>(run_.config.batches_per_unit_max));
  return static_cast<std::uint32_t>(std::clamp(fitting, 1.0, most));
}

bool UnitSizing::is_early(const SessionState& session, const UnitInFlight& unit,
                          std::size_t ready) const {
  const BatchIndex end = unit.first + unit.batches;
  const bool more_follow = end == pipeline_.frontier() && !run_.plan.is_round_end(end);
  if (!unit.wants_gradient || !more_follow || session.speed <= 0) return false;
  // Shards that are behind others catch up first; then all shards share units again.
  if (unit.leases.size() < ready) return false;
  // Outstanding work must keep the volunteer busy until the next result has gone out and the next
  // unit has come, and as long again: speeds and links vary, and an idle volunteer loses more than
  // a message costs.
  const double batch_us = expected_us(session, run_.model.batch_examples, unit.leases.size());
  const auto round_trip_us = static_cast<double>(std::max<std::int64_t>(session.round_trip_us, 0));
  const double spare_us = batch_us * session.batches_in_flight - 2 * round_trip_us;
  const double affordable = std::max(0.0, spare_us / (batch_us + session.transit_us));
  // A quarter of what the lag allows: the first batch's gradient comes back with the last's.
  const std::uint32_t wanted =
      std::min({batches(session, unit.first, unit.leases.size()),
                (run_.plan.lag(unit.first) + 1) / 4, static_cast<std::uint32_t>(affordable)});
  return unit.batches < wanted;
}

std::uint32_t UnitSizing::batches_in_flight_max(const SessionState& session,
                                                std::size_t held) const {
  // Keeps a volunteer busy over a round trip. The lag bounds live batches anyway, so that this
  // limits replays only.
  const std::uint32_t most = run_.config.batches_per_unit_max;
  const std::uint32_t limit = std::max(run_.model.staleness + 1, 2 * most);
  const bool has_batches = pipeline_.frontier() > pipeline_.applied();
  if (session.speed <= 0 || session.round_trip_us <= 0 || !has_batches) return limit;
  const double batch_us =
      expected_us(session, run_.model.batch_examples, std::max<std::size_t>(1, held));
  const double over_round_trip = static_cast<double>(session.round_trip_us) / batch_us;
  return limit + static_cast<std::uint32_t>(std::min(over_round_trip, 2.0 * most));
}

void UnitSizing::measure(SessionState& session, const UnitInFlight& unit, std::uint64_t examples,
                         std::uint64_t compute_us, Instant now) {
  if (unit.sent <= session.paused_at) {  // the time it was out says nothing of its link
    session.last_result = session.last_answer = now;
    return;
  }
  const auto smooth = [&](double& value, double sample) {
    value = session.last_result == Instant{} ? sample : 0.97 * value + 0.03 * sample;
  };
  const auto compute = static_cast<double>(std::min<std::uint64_t>(compute_us, 1u << 30));
  const Micros round_trip(std::max<std::int64_t>(session.round_trip_us, 0));
  const Micros service = now - std::max(unit.sent + round_trip, session.last_answer);
  const double batches = unit.batches;
  smooth(session.transit_us,
         std::max(0.0, static_cast<double>(service.count()) - compute) / batches);
  smooth(session.compute_us, compute / batches);
  if (compute > 0) {
    smooth(session.speed, static_cast<double>(examples * unit.leases.size()) * 1e6 / compute);
  }
  session.last_result = session.last_answer = now;
}

}  // namespace gleaner
