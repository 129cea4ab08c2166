// Examples that the volunteers of a relay request. An example crosses the line to the master once:
// the latest kRelayExamplesBytes are kept, and a request waits for an example that is on its way.
// The master sees ordinary requests, some of them shorter or absent. Pure state; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "schema/messages.hpp"

namespace gleaner {

inline constexpr std::size_t kRelayExamplesBytes = std::size_t{64} << 20;

class RelayExamples {
 public:
  explicit RelayExamples(std::size_t bytes_max = kRelayExamplesBytes) : bytes_max_(bytes_max) {}

  // A volunteer's request. Returns answers from the kept examples, and leaves in the request what
  // the master must be asked in the volunteer's name.
  std::vector<Points> ask(std::uint32_t channel, PointsRequest& request);

  // The master's answer to a volunteer. Returns the parts for other volunteers.
  std::map<std::uint32_t, Points> take(std::uint32_t channel, const Points& points);

  // A volunteer is gone. Returns new requests for the examples that others await from its requests.
  std::vector<std::pair<std::uint32_t, PointsRequest>> leave(std::uint32_t channel);

 private:
  using Key = std::pair<PointSet, std::uint64_t>;

  struct Example {
    std::vector<std::uint32_t> features;
    std::vector<float> values;
    std::optional<std::vector<std::uint32_t>> labels;
  };

  static void append_to(Points& points, std::uint64_t point, const Example& example);
  void keep(const Key& key, Example example);

  std::size_t bytes_max_;
  std::map<Key, Example> kept_;
  std::deque<Key> order_;  // of `kept_`, the oldest first
  std::size_t bytes_ = 0;  // of `kept_`
  // The channels that await an example; the first has asked the master.
  std::map<Key, std::vector<std::uint32_t>> awaited_;
};

}  // namespace gleaner
