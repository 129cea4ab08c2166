// The log of a simulation: marks (counted faults and rare branches), violations of invariants, and
// readable lines on request. The log steers nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/time.hpp"
#include "tests/sim/network/sim_clock.hpp"

namespace gleaner::sim {

using TraceSink = std::function<void(Instant when, std::string_view who, std::string_view what)>;

class SimLog {
 public:
  SimLog(const SimClock& clock, TraceSink sink) : clock_(clock), sink_(std::move(sink)) {}

  // Counts a fault or a rare branch: a coverage mark.
  void mark(const std::string& what) { ++marks_[what]; }

  void violation(const std::string& what) {
    if (is_traced()) line("CHECK", what);
    if (violations_.size() < kViolationsMax) violations_.push_back(what);
  }

  // Build the text of a line only if this is true.
  [[nodiscard]] bool is_traced() const { return static_cast<bool>(sink_); }

  void line(std::string_view who, std::string_view what) const {
    if (sink_) sink_(clock_.now(), who, what);
  }

  [[nodiscard]] const std::map<std::string, std::uint64_t>& marks() const { return marks_; }

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  static constexpr std::size_t kViolationsMax = 20;

  const SimClock& clock_;
  TraceSink sink_;
  std::map<std::string, std::uint64_t> marks_;
  std::vector<std::string> violations_;
};

}  // namespace gleaner::sim
