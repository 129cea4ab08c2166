// Converts messages and records to bytes and back. Decoding is bounded (traversal, nesting, every
// list's size). It refuses NaN and infinity, lists whose sizes disagree, and unknown enumerators;
// the error names message and field. Stateless; any thread. Throws nothing of Cap'n Proto.
#pragma once

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// An unpacked single-segment Cap'n Proto message.
Bytes encode(const Message& message);
// An error of kResources where there is no memory for the message.
Result<Message> decode(ByteView bytes);
// The position in Message of an encoded message's type. Nothing else is checked.
Result<std::size_t> type_of(ByteView bytes);

// The persisted form of a staged commit's part.
Bytes encode_update(const SparseUpdate& update);
Result<SparseUpdate> decode_update(ByteView bytes);

}  // namespace gleaner
