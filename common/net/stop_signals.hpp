// The signals that ask a program to stop.
#pragma once

#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <csignal>

#include "common/os/process.hpp"

namespace gleaner {

#ifdef SIGHUP
inline constexpr int kHangup = SIGHUP;
#else
inline constexpr int kHangup = -1;
#endif

// A closed terminal asks too, unless the program was started to outlive it. It may ask twice, by
// the system and by the shell: a second kHangup is no sign of impatience.
class StopSignals : public asio::signal_set {
 public:
  explicit StopSignals(asio::io_context& io) : asio::signal_set(io, SIGINT, SIGTERM) {
    if (kHangup > 0 && !os::ignores_hangup()) add(kHangup);
  }
};

}  // namespace gleaner
