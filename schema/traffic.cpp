#include "schema/traffic.hpp"

#include <variant>

#include "schema/is_one_of.hpp"

namespace gleaner {
namespace {

// Where a message's bytes are counted besides `all`; null: nowhere.
template <typename T>
constexpr std::uint64_t Traffic::*kind_of() {
  if (is_one_of<T, TrainUnit, UnitResult, InputUnit, InputResult>) return &Traffic::units;
  if (is_one_of<T, EvalUnit, EvalResult>) return &Traffic::evaluation;
  if (is_one_of<T, ShardCommit, CommitAck, CommitCredit>) return &Traffic::commits;
  if (is_one_of<T, PointsRequest, Points>) return &Traffic::points;
  if (is_one_of<T, LeaseGrant, ChunkRequest, ShardChunk, ShardReady, ReleaseRequest, HandOver,
                Revoke, ShardOffer>) {
    return &Traffic::shards;
  }
  return nullptr;
}

}  // namespace

void Traffic::add(const Message& message, std::uint64_t bytes) {
  all += bytes;
  const auto kind = std::visit([]<typename T>(const T&) { return kind_of<T>(); }, message);
  if (kind != nullptr) this->*kind += bytes;
}

Traffic& Traffic::operator+=(const Traffic& other) {
  for (const auto count : {&Traffic::all, &Traffic::units, &Traffic::evaluation, &Traffic::commits,
                           &Traffic::shards, &Traffic::points}) {
    this->*count += other.*count;
  }
  return *this;
}

}  // namespace gleaner
