// Fingerprints of answers, by which two volunteers' answers are compared: 128 bits of SHA-256 over
// everything in an answer that reaches the model, a loss or a metric. Times and unit numbers are
// left out. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "schema/messages.hpp"

namespace gleaner {

using Fingerprint = std::array<std::uint8_t, 16>;

Fingerprint fingerprint(const UnitResult& result);
Fingerprint fingerprint(const EvalResult& result);
// Fingerprint of a commit's parts up to this part; independent of the lease. `before` is the
// fingerprint of the parts before it, and 0 for the first part.
Fingerprint fingerprint(const ShardCommit& part, const Fingerprint& before);

}  // namespace gleaner
