// A question to a running master: one connection, one question, one answer. Blocks.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "common/access/addresses.hpp"
#include "common/result.hpp"
#include "schema/delivery.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The master's answer, whatever its type. Errors name HOST:PORT: kIo when nobody answers, kIdentity
// when the key is another one, else the code of the master's refusal.
Result<Message> ask_master(const MasterAddress& address, const Message& question);

// The question about the run, with the invite of `address`.
Observe observe_by(const MasterAddress& address);

// Asks, and requires an answer of this type.
template <typename Answer>
Result<Answer> ask(const MasterAddress& address, const Message& question) {
  static_assert((kFactsOf<Answer>.routes & route::kAnswer) != 0);
  Result<Message> message = ask_master(address, question);
  if (!message) return message.error();
  if (auto* wanted = std::get_if<Answer>(&*message)) return std::move(*wanted);
  return Error{ErrorCode::kProtocol, fmt::format("the master at {}: it answers with {}",
                                                 to_text(address.where), message_name(*message))};
}

}  // namespace gleaner
