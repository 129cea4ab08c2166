#include "master/core/bag/lease_index.hpp"

namespace gleaner {

const std::set<LeaseIndex::Piece>& LeaseIndex::idle_at(SessionId holder) const {
  static const std::set<Piece> kNone;
  const auto own = idle_.find(holder);
  return own == idle_.end() ? kNone : own->second;
}

void LeaseIndex::rank(SessionId holder) {
  if (const auto known = ranks_.find(holder); known != ranks_.end()) {
    rich_.erase({known->second.first, known->second.second, holder});
    ranks_.erase(known);
  }
  const std::set<Piece>& own = idle_at(holder);
  if (own.empty()) return;
  const std::pair rank(own.begin()->first, -static_cast<std::int64_t>(own.size()));
  ranks_.emplace(holder, rank);
  rich_.emplace(rank.first, rank.second, holder);
}

void LeaseIndex::erase(ShardId shard) {
  const Entry entry = std::exchange(entries_[raw(shard)], {});
  const Piece piece{entry.round, shard};
  if (entry.kind == Kind::kFree) free_.erase(piece);
  if (entry.kind == Kind::kOut) out_.erase({entry.round, entry.since, shard});
  if (entry.kind != Kind::kIdle) return;
  const auto own = idle_.find(entry.holder);
  own->second.erase(piece);
  if (own->second.empty()) idle_.erase(own);
  rank(entry.holder);
}

void LeaseIndex::put(ShardId shard, Entry entry) {
  const Entry before = entries_[raw(shard)];
  const bool stays_out =
      before.kind == Kind::kOut && before.holder == entry.holder && before.round == entry.round;
  if (entry.kind == Kind::kOut && stays_out) entry.since = before.since;
  erase(shard);
  entries_[raw(shard)] = entry;
  if (entry.kind == Kind::kFree) free_.emplace(entry.round, shard);
  if (entry.kind == Kind::kOut) out_.emplace(entry.round, entry.since, shard);
  if (entry.kind != Kind::kIdle) return;
  idle_[entry.holder].emplace(entry.round, shard);
  rank(entry.holder);
}

}  // namespace gleaner
