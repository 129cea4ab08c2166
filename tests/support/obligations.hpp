// The messages by which volunteers meet their obligations.
#pragma once

#include <array>
#include <optional>
#include <variant>

#include "master/core/session.hpp"
#include "schema/delivery.hpp"

namespace gleaner {

inline constexpr std::array kObligations{
    Obligation::kHello, Obligation::kHeartbeat, Obligation::kOffer,   Obligation::kLoad,
    Obligation::kUnit,  Obligation::kCommit,    Obligation::kHandOver};

// Lists every type of message that volunteers send, so that a new type does not compile without an
// entry.
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

  // Requests and farewells: nobody waits for them.
  Some operator()(const ChunkRequest&) const { return std::nullopt; }

  Some operator()(const PointsRequest&) const { return std::nullopt; }

  Some operator()(const Leaving&) const { return std::nullopt; }

  Some operator()(const Goodbye&) const { return std::nullopt; }
};

// The obligation that the message meets; nullopt when it meets none.
inline std::optional<Obligation> met_by(const Message& message) {
  return std::visit(
      []<typename Type>(const Type& of_type) -> std::optional<Obligation> {
        if constexpr ((kFactsOf<Type>.routes & route::kUp) != 0) return MetBy{}(of_type);
        return std::nullopt;
      },
      message);
}

}  // namespace gleaner
