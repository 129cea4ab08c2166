// Messages for tests of the codec: fixed samples whose bytes are pinned, and random ones.
#pragma once

#include <vector>

#include "common/counter_random.hpp"
#include "common/work/quantized_activations.hpp"
#include "schema/messages.hpp"

namespace gleaner::testing {

// One of each kind, in the order of Message, every field different from its default.
std::vector<Message> sample_messages();
SparseUpdate sample_update();

// A well-formed message of kind `kind` (its position in Message), a function of the generator.
Message random_message(std::size_t kind, Rng& rng);
SparseUpdate random_update(Rng& rng);
// Changes one number of the message, at any depth. It may be well formed no more.
void change_number(Message& message, Rng& rng);
QuantizedActivations random_codes(std::uint32_t examples, std::uint32_t hidden, Rng& rng);

// Deep equality; messages with shared bytes are compared as they are encoded.
bool are_equal(const Message& a, const Message& b);

}  // namespace gleaner::testing
