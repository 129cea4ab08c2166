// Events of keyboards, mice and touchpads, where this process may read them (group `input`). Where
// it may not, there is no such source: the desktop or the terminals have to tell. One thread.
#pragma once

#include <map>
#include <string>

#include "volunteer/idle/readings.hpp"

namespace gleaner::volunteer {

class InputDevices : public UseSource {
 public:
  // `root` stands before /dev; empty on a real machine.
  explicit InputDevices(std::string root = {}) : root_(std::move(root)) {}

  ~InputDevices() override;
  InputDevices(const InputDevices&) = delete;
  InputDevices& operator=(const InputDevices&) = delete;

  std::optional<UseReading> read(Instant now) override;

 private:
  void look_for_devices(Instant now);

  const std::string root_;
  std::map<std::string, int> open_;  // name -> descriptor
  std::optional<Instant> looked_at_;
  Instant last_use_{};
  std::string last_device_ = "none";
};

}  // namespace gleaner::volunteer
