#include "tools/relay/relay_examples.hpp"

#include <algorithm>
#include <span>

#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kEntryBytes = sizeof(std::uint32_t) + sizeof(float);
constexpr std::size_t kExampleBytes = 256;  // of memory, besides its entries

Points no_points(PointSet set) {
  return {set, {}, {0}, {}, {}, {{0}, {}}};
}

template <typename T>
void append(std::vector<T>& list, const std::vector<T>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

}  // namespace

void RelayExamples::append_to(Points& points, std::uint64_t point, const Example& example) {
  points.points.push_back(point);
  append(points.features, example.features);
  append(points.values, example.values);
  points.offsets.push_back(static_cast<std::uint32_t>(points.features.size()));
  if (!example.labels) return;
  append(points.labels.neurons, *example.labels);
  points.labels.offsets.push_back(static_cast<std::uint32_t>(points.labels.neurons.size()));
}

std::vector<Points> RelayExamples::ask(std::uint32_t channel, PointsRequest& request) {
  std::vector<Points> answers;
  std::erase_if(request.points, [&](std::uint64_t point) {
    const Key key{request.set, point};
    if (const auto kept = kept_.find(key); kept != kept_.end()) {
      if (answers.empty() || answers.back().features.size() * kEntryBytes >= kPointsBytes) {
        answers.push_back(no_points(request.set));
      }
      append_to(answers.back(), point, kept->second);
      return true;
    }
    std::vector<std::uint32_t>& waiting = awaited_[key];
    // The master shall see who asks twice.
    if (std::ranges::find(waiting, channel) != waiting.end()) return false;
    waiting.push_back(channel);
    return waiting.size() > 1;
  });
  return answers;
}

std::map<std::uint32_t, Points> RelayExamples::take(std::uint32_t channel, const Points& points) {
  std::map<std::uint32_t, Points> others;
  for (std::size_t i = 0; i < points.points.size(); ++i) {
    const Key key{points.set, points.points[i]};
    const auto awaited = awaited_.find(key);
    if (awaited == awaited_.end() || awaited->second.front() != channel) continue;
    const auto part_of = [i]<typename T>(const std::vector<T>& all,
                                         const std::vector<std::uint32_t>& offsets) {
      return std::vector<T>(all.begin() + offsets[i], all.begin() + offsets[i + 1]);
    };
    Example example{part_of(points.features, points.offsets),
                    part_of(points.values, points.offsets), std::nullopt};
    if (points.labels.offsets.size() > 1) {
      example.labels = part_of(points.labels.neurons, points.labels.offsets);
    }
    for (const std::uint32_t other : std::span(awaited->second).subspan(1)) {
      const auto part = others.try_emplace(other, no_points(points.set)).first;
      append_to(part->second, key.second, example);
    }
    awaited_.erase(awaited);
    keep(key, std::move(example));
  }
  return others;
}

void RelayExamples::keep(const Key& key, Example example) {
  const auto bytes_of = [](const Example& one) {
    const std::size_t labels = one.labels ? one.labels->size() : 0;
    return kExampleBytes + one.features.size() * kEntryBytes + labels * sizeof(std::uint32_t);
  };
  bytes_ += bytes_of(example);
  kept_.emplace(key, std::move(example));
  order_.push_back(key);
  while (bytes_ > bytes_max_) {
    const auto oldest = kept_.find(order_.front());
    bytes_ -= bytes_of(oldest->second);
    kept_.erase(oldest);
    order_.pop_front();
  }
}

std::vector<std::pair<std::uint32_t, PointsRequest>> RelayExamples::leave(std::uint32_t channel) {
  std::vector<std::pair<std::uint32_t, PointsRequest>> requests;
  for (auto next = awaited_.begin(); next != awaited_.end();) {
    const auto awaited = next++;
    auto& [key, waiting] = *awaited;
    const bool has_asked = waiting.front() == channel;
    std::erase(waiting, channel);
    if (waiting.empty()) {
      awaited_.erase(awaited);
    } else if (has_asked) {
      const auto is_for_it = [&, set = key.first](const auto& one) {
        return one.first == waiting.front() && one.second.set == set &&
               one.second.points.size() < kPointsPerRequestMax;
      };
      auto request = std::ranges::find_if(requests, is_for_it);
      if (request == requests.end()) {
        request = requests.insert(request, {waiting.front(), PointsRequest{key.first, {}}});
      }
      request->second.points.push_back(key.second);
    }
  }
  return requests;
}

}  // namespace gleaner
