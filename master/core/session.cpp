#include "master/core/session.hpp"

namespace gleaner {
namespace {

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

}  // namespace

std::optional<Obligation> met_by(const Message& message) {
  return std::visit(MetBy{}, message);
}

const char* what_of(Obligation obligation) {
  switch (obligation) {
    case Obligation::kHello:
      return "introduce itself";
    case Obligation::kHeartbeat:
      return "say a word";
    case Obligation::kOffer:
      return "offer the shards that it kept";
    case Obligation::kLoad:
      return "load a shard";
    case Obligation::kUnit:
      return "answer a unit";
    case Obligation::kCommit:
      return "commit a shard";
    case Obligation::kHandOver:
      return "hand a shard over";
  }
  return "";
}

}  // namespace gleaner
