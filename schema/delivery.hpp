// Brings a message to the handler of its type, and refuses a message that its sender may not send,
// by the rows of messages.hpp. Pure; any thread.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

struct MessageFacts {
  const char* name;
  Lane lane;
  std::uint64_t Traffic::*account;  // null: only in `all`
  std::uint8_t routes;              // at least one
  AtRelay at_relay;
};

namespace route {
#define GLEANER_MESSAGE_FACTS(type, lane, account, routes, relay) \
  MessageFacts{#type, Lane::lane, account, routes, AtRelay::relay},
// One entry per type of Message, in its order.
inline constexpr std::array kMessageFacts = {GLEANER_MESSAGES(GLEANER_MESSAGE_FACTS)};
#undef GLEANER_MESSAGE_FACTS
}  // namespace route

using route::kMessageFacts;

// The position of `Type` in Message.
template <typename Type>
inline constexpr std::size_t kTypeOf = []<typename... Types>(const std::variant<Types...>*) {
  std::size_t position = 0;
  (void)((std::same_as<Type, Types> || (++position, false)) || ...);
  return position;
}(static_cast<const Message*>(nullptr));

template <typename Type>
inline constexpr MessageFacts kFactsOf = kMessageFacts[kTypeOf<Type>];

// The error for a message that came by none of its routes.
Error misdirected(std::size_t type);

// Calls `handle` with the message, which came by one of `Routes`. An error of kProtocol if no
// message of its type does. `handle` returns void or a Result<void>, and takes every type that has
// one of `Routes` in the table.
template <std::uint8_t Routes, typename Handle>
Result<void> deliver(Message& message, const Handle& handle) {
  return std::visit(
      [&]<typename Type>(Type& of_type) -> Result<void> {
        if constexpr ((kFactsOf<Type>.routes & Routes) == 0) {
          return misdirected(kTypeOf<Type>);
        } else if constexpr (std::is_void_v<decltype(handle(of_type))>) {
          handle(of_type);
          return {};
        } else {
          return handle(of_type);
        }
      },
      message);
}

}  // namespace gleaner
