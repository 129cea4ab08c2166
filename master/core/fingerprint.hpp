// Two volunteers' answers to one piece of work must agree in their fingerprints: 128 bits of
// SHA-256 over everything in an answer that reaches the model, a loss or a metric. Times and unit
// numbers have no part in it. Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>

#include "schema/messages.hpp"

namespace gleaner {

using Fingerprint = std::array<std::uint8_t, 16>;

Fingerprint fingerprint(const UnitResult& result);
Fingerprint fingerprint(const EvalResult& result);
// Fingerprint of a commit's parts up to this one, whoever holds the lease. `before` is that of the
// parts before, and 0 for the first.
Fingerprint fingerprint(const ShardCommit& part, const Fingerprint& before);

}  // namespace gleaner
