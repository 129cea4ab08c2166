// Messages and records <-> bytes. Decoding is bounded (traversal, nesting, every list's size),
// refuses NaN and infinity, lists whose sizes disagree, and unknown enumerators, and says which
// message and field. Stateless; any thread. Cap'n Proto's exceptions do not leave this file.
#pragma once

#include "common/bytes.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// An unpacked single-segment Cap'n Proto message.
Bytes encode(const Message& message);
// An error of kResources where there is no memory for the message.
Result<Message> decode(ByteView bytes);
// The position in Message of the type of an encoded message, of which nothing else is looked at.
Result<std::size_t> type_of(ByteView bytes);

// The persisted form of a staged commit's part.
Bytes encode_update(const SparseUpdate& update);
Result<SparseUpdate> decode_update(ByteView bytes);

}  // namespace gleaner
