// The run as Prometheus reads it: base units, and labels from short lists that are known beforehand
// (a volunteer's name is no label). Each explains itself in its help text; dashboards/ has rules
// and a dashboard.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "common/http/http_server.hpp"
#include "master/see/page_view.hpp"

namespace gleaner {

// Counted from the events of this process's life.
struct EventCounts {
  std::uint64_t joined = 0;
  std::uint64_t left_politely = 0, left_otherwise = 0;
  std::uint64_t warnings = 0, errors = 0;
  std::uint64_t rate_cuts = 0;
  std::uint64_t checkpoints = 0;
};

std::string run_metrics(const PageView& view, const EventCounts& events, const HttpCounts& http);

}  // namespace gleaner
