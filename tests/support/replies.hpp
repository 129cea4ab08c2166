// Replies of an executor under test: of one kind, and after it got its examples.
#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "schema/messages.hpp"

namespace gleaner {

template <typename T>
std::vector<T> of_type(const std::vector<Message>& messages) {
  std::vector<T> found;
  for (const Message& message : messages) {
    if (const auto* one = std::get_if<T>(&message)) found.push_back(*one);
  }
  return found;
}

// Gives the message to `done`, which returns replies, and answers each request for examples by
// `points`. Returns all replies but these requests.
template <typename Done, typename MakePoints>
std::vector<Message> replies_with_points(Message message, Done&& done, MakePoints&& points) {
  std::vector<Message> said;
  std::vector<Message> pending{std::move(message)};
  while (!pending.empty()) {
    Message next = std::move(pending.front());
    pending.erase(pending.begin());
    for (Message& reply : done(std::move(next))) {
      if (const auto* request = std::get_if<PointsRequest>(&reply)) {
        pending.emplace_back(points(*request));
      } else {
        said.push_back(std::move(reply));
      }
    }
  }
  return said;
}

}  // namespace gleaner
