// Use of terminals: consoles and pseudo-terminals, hence logins over ssh too. The kernel notes in a
// device's access time when something was typed, to 8 seconds after a rest of less than that, and
// at once after a longer one. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "volunteer/idle/readings.hpp"

namespace gleaner::volunteer {

class Terminals : public UseSource {
 public:
  // `root` stands before /dev; empty on a real machine.
  explicit Terminals(std::string root = {}) : root_(std::move(root)) {}

  std::optional<UseReading> read(Instant now) override;

 private:
  // One device.
  struct Seen {
    std::int64_t accessed_ns = 0;
    Instant last_use{};
  };

  const std::string root_;
  std::map<std::string, Seen> seen_;
};

}  // namespace gleaner::volunteer
