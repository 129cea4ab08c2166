// Examples that the volunteers of a relay ask for. Each crosses the line to the master once: the
// latest kRelayExamplesBytes of them are kept, and who asks for one that is on its way waits for
// it. The master sees ordinary requests, some of them shorter or absent. Pure state; one thread.
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

  // A volunteer asks. Returns answers from what is here, and leaves in the request what is to be
  // asked of the master in its name, perhaps nothing.
  std::vector<Points> ask(std::uint32_t channel, PointsRequest& request);

  // The master's answer to a volunteer. Returns what others get of it.
  std::map<std::uint32_t, Points> take(std::uint32_t channel, const Points& points);

  // A volunteer is gone. What others await of its requests is to be asked of the master in theirs.
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
  // Who awaits an example: the first has asked the master.
  std::map<Key, std::vector<std::uint32_t>> awaited_;
};

}  // namespace gleaner
