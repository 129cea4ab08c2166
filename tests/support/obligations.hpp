// The obligation that each message of a volunteer meets. Pure.
#pragma once

#include <array>
#include <optional>
#include <type_traits>
#include <variant>

#include "master/core/session.hpp"
#include "schema/messages.hpp"

namespace gleaner {

inline constexpr std::array kObligations{
    Obligation::kHello, Obligation::kHeartbeat, Obligation::kOffer,   Obligation::kLoad,
    Obligation::kUnit,  Obligation::kCommit,    Obligation::kHandOver};

// One answer per type of message, so that another type does not compile without one.
struct MetBy {
  using Some = std::optional<Obligation>;

  Some operator()(const Hello&) const { return Obligation::kHello; }

  Some operator()(const Heartbeat&) const { return Obligation::kHeartbeat; }

  Some operator()(const ShardOffer&) const { return Obligation::kOffer; }

  Some operator()(const ShardReady&) const { return Obligation::kLoad; }

  Some operator()(const UnitResult&) const { return Obligation::kUnit; }

  Some operator()(const EvalResult&) const { return Obligation::kUnit; }

  Some operator()(const InputResult&) const { return Obligation::kUnit; }

  Some operator()(const ShardCommit&) const { return Obligation::kCommit; }

  Some operator()(const HandOver&) const { return Obligation::kHandOver; }

  // Requests, and the end: nobody waits for them.
  Some operator()(const ChunkRequest&) const { return std::nullopt; }

  Some operator()(const PointsRequest&) const { return std::nullopt; }

  Some operator()(const Leaving&) const { return std::nullopt; }

  Some operator()(const Goodbye&) const { return std::nullopt; }

  // Messages between a master and a relay, which no session hears.
  template <typename R>

  requires(std::is_same_v<R, RelayHello> || std::is_same_v<R, RelayOpen> ||
           std::is_same_v<R, RelayFrame> || std::is_same_v<R, RelayPart> ||
           std::is_same_v<R, RelayClose> || std::is_same_v<R, RelaySum> ||
           std::is_same_v<R, RelaySplit>) Some
  operator()(const R&) const {
    return std::nullopt;
  }

  // Messages of the master and of tools.
  Some operator()(const Welcome&) const { return std::nullopt; }

  Some operator()(const Refusal&) const { return std::nullopt; }

  Some operator()(const LeaseGrant&) const { return std::nullopt; }

  Some operator()(const ShardChunk&) const { return std::nullopt; }

  Some operator()(const ReleaseRequest&) const { return std::nullopt; }

  Some operator()(const Revoke&) const { return std::nullopt; }

  Some operator()(const TrainUnit&) const { return std::nullopt; }

  Some operator()(const CommitCredit&) const { return std::nullopt; }

  Some operator()(const EvalUnit&) const { return std::nullopt; }

  Some operator()(const InputUnit&) const { return std::nullopt; }

  Some operator()(const Points&) const { return std::nullopt; }

  Some operator()(const Observe&) const { return std::nullopt; }

  Some operator()(const RunStatus&) const { return std::nullopt; }

  Some operator()(const AccessAnswer&) const { return std::nullopt; }

  Some operator()(const AccessRequest&) const { return std::nullopt; }
};

// The obligation that a volunteer meets with the message; nullopt for a message that meets none.
inline std::optional<Obligation> met_by(const Message& message) {
  return std::visit(MetBy{}, message);
}

}  // namespace gleaner
