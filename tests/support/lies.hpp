// False answers of a volunteer, in messages that the protocol allows.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include "schema/messages.hpp"

namespace gleaner {

// Makes the message false. Returns false where the lie does not fit the message.
using Lie = std::function<bool(Message&)>;

// A lie in messages of one type.
template <typename T>
Lie about(std::function<bool(T&)> change) {
  return [change = std::move(change)](Message& message) {
    auto* const own = std::get_if<T>(&message);
    return own != nullptr && change(*own);
  };
}

// By name. Lies change results of arithmetic: answers to training units and evaluation units, and
// commits. A lie has no state: the same message gives the same lie.
const std::map<std::string, Lie>& lies();

}  // namespace gleaner
