#include "master/entrance/network_settings.hpp"

namespace gleaner {
namespace {

// The memory that all unfinished messages of volunteers may take together. Commits and hand-overs
// come in parts that are far smaller.
constexpr std::size_t kUnfinishedBytesMax = std::size_t{128} << 20;
// All messages that wait to be sent may take together what may wait for this many volunteers.
constexpr std::size_t kFullQueuesMax = 16;

}  // namespace

TcpLinkOptions link_options(const MasterConfig& config) {
  TcpLinkOptions options;
  options.limits.send_queue_bytes_max = config.network.send_queue_bytes;
  options.limits.pace_in = make_pacer(config.network.limit_down);
  options.limits.pace_out = make_pacer(config.network.limit_up);
  options.limits.budget = std::make_shared<FrameBudget>(kUnfinishedBytesMax);
  options.limits.send_budget =
      std::make_shared<FrameBudget>(kFullQueuesMax * config.network.send_queue_bytes);
  return options;
}

LobbyLimits lobby_limits(const MasterConfig& config) {
  LobbyLimits limits;
  limits.introduction_time_max = Millis(config.network.join_timeout_ms);
  limits.waiting_max = config.network.waiting_max;
  limits.waiting_per_address_max = config.network.waiting_per_address_max;
  return limits;
}

}  // namespace gleaner
