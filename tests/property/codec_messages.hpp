// Messages for tests of the codec: fixed samples with pinned bytes, and random messages.
#pragma once

#include <vector>

#include "common/counter_random.hpp"
#include "common/work/quantized_activations.hpp"
#include "schema/messages.hpp"

namespace gleaner::testing {

// One of each kind, in the order of Message, every field different from its default.
std::vector<Message> sample_messages();
SparseUpdate sample_update();

// A random well-formed message of the kind at position `kind` in Message.
Message random_message(std::size_t kind, Rng& rng);
SparseUpdate random_update(Rng& rng);
// Changes one number of the message, at any depth. The message may become malformed.
void change_number(Message& message, Rng& rng);
QuantizedActivations random_codes(std::uint32_t examples, std::uint32_t hidden, Rng& rng);

// Deep equality; compares messages with shared bytes in their encoding.
bool are_equal(const Message& a, const Message& b);

}  // namespace gleaner::testing
