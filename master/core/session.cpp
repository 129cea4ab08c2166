#include "master/core/session.hpp"

namespace gleaner {

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
