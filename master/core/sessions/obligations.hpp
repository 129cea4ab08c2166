// Obligations of volunteers towards the master, and the message that meets each. Each obligation
// has one deadline, on the master's clock, from when it began: see Sessions::time_for and
// Placement::due. Nothing that a volunteer says moves it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "common/time.hpp"
#include "schema/messages.hpp"

namespace gleaner {

enum class Obligation : std::uint8_t {
  kHello,      // to introduce itself
  kHeartbeat,  // to be heard
  kOffer,      // to offer the shards that it kept
  kLoad,       // to load a shard that it was lent, as a holder, as an auditor or on trial
  kUnit,       // to answer a unit, of its own work, of an audit or of a trial
  kCommit,     // to commit a shard at the end of a round
  kHandOver,   // to hand a shard over
};

inline constexpr std::array kObligations{
    Obligation::kHello, Obligation::kHeartbeat, Obligation::kOffer,   Obligation::kLoad,
    Obligation::kUnit,  Obligation::kCommit,    Obligation::kHandOver};

// "load a shard".
const char* what_of(Obligation obligation);

// The obligation that a volunteer meets with the message; nullopt for one that meets none.
std::optional<Obligation> met_by(const Message& message);

// Something that is owed.
struct Debt {
  Obligation what = Obligation::kUnit;
  Instant since{};
  Instant due{};
};

}  // namespace gleaner
