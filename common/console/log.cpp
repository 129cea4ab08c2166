#include "common/console/log.hpp"

#include <fmt/format.h>

#include <utility>

namespace gleaner {

const char* log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

std::optional<std::string> LogThrottle::pass(const std::string& line, Instant now) {
  if (!period_began_ || now - *period_began_ >= period_) {
    period_began_ = now;
    shown_.clear();
  }
  if (shown_.size() >= lines_max_ || !shown_.insert(line).second) {
    ++left_out_;
    return std::nullopt;
  }
  const std::uint64_t left_out = std::exchange(left_out_, 0);
  if (left_out == 0) return line;
  return fmt::format("{} ({} more such lines were left out)", line, left_out);
}

}  // namespace gleaner
