// Waiting for room on the disk of the store, in a master whose store is closed for want of it.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/ids.hpp"
#include "common/net/stop_signals.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner {

// Passes time and notes signals while there is no run to stop.
class Pause {
 public:
  Pause();

  // Waits, at least a second, until the disk has `bytes` free; false when a signal asks to stop.
  // Calls `on_second` every second, and ends with false when `on_second` returns false.
  bool wait_for_room(const std::string& path, std::uint64_t bytes,
                     const std::function<bool()>& on_second);
  // Whether a signal has come since the construction.
  bool is_stopped();

  [[nodiscard]] double seconds() const { return seconds_in(monotonic_now() - since_); }

 private:
  const Instant since_ = monotonic_now();
  asio::io_context io_{1};
  StopSignals signals_{io_};
  bool is_stopped_ = false;
};

// The bytes that must be free before a store that ran out of room is opened again: its reserve,
// doubled each time that it did not suffice for another checkpoint. Pure.
class RoomWanted {
 public:
  explicit RoomWanted(std::uint64_t reserve) : reserve_(reserve), bytes_(reserve) {}

  // The bytes wanted after `error`, with the store last seen at `checkpoint`.
  std::uint64_t after(const Error& error, RoundIndex checkpoint);

 private:
  const std::uint64_t reserve_;
  std::uint64_t bytes_;
  std::optional<RoundIndex> unsure_at_;  // checkpoint at which room ran out within a write
};

}  // namespace gleaner
