// When the master's own volunteer takes part, so that a run that nobody helps goes on. Pure;
// whether it takes part changes when something is computed, never what.
#pragma once

#include <cstdint>
#include <optional>

#include "common/time.hpp"

namespace gleaner {

class Fallback {
 public:
  // Takes over when nobody has been here for `patience`, and steps back when somebody has been here
  // for as long, so that a volunteer that comes and goes does not make it flap.
  explicit Fallback(Millis patience) : patience_(patience) {}

  // To be called a few times a second with the number of other volunteers that are connected.
  // Returns whether the master's own is to take part from now on.
  bool observe(std::uint32_t others, Instant now) {
    const bool wants_change = (others == 0) != takes_part_;
    if (!wants_change) {
      since_.reset();
    } else if (!since_) {
      since_ = now;
    } else if (now - *since_ >= patience_) {
      takes_part_ = !takes_part_;
      since_.reset();
    }
    return takes_part_;
  }

 private:
  const Millis patience_;
  std::optional<Instant> since_;  // since when the present state is the wrong one
  bool takes_part_ = false;
};

}  // namespace gleaner
