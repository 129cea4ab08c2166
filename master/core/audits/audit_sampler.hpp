// Draws which rounds of which volunteers are audited. Under `adaptive` all of a stranger's first
// rounds are drawn, and later rounds by a lot that nobody can foresee without the secret. Used from
// the core only.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "common/access/sha256.hpp"
#include "common/access/standing.hpp"
#include "common/ids.hpp"
#include "master/core/core_config.hpp"

namespace gleaner {

class AuditSampler {
 public:
  // `config` outlives it.
  explicit AuditSampler(const CoreConfig& config) : config_(config) {}

  // Whether the work of the stranger `who` in the round is audited. Drawn at the first call for a
  // round, and kept.
  [[nodiscard]] bool is_drawn(const KeyId& who, RoundIndex round);

  // Has the round audited, whatever the lot was.
  void draw(const KeyId& who, RoundIndex round) { drawn_[{round, who}] = true; }

  // All of the stranger's work in one round was confirmed.
  void confirmed(const KeyId& who) { ++confirmed_[who]; }

  void forget_before(RoundIndex checkpoint);

 private:
  // In [0, 1); a function of secret, volunteer and round.
  [[nodiscard]] double lot_of(const KeyId& who, RoundIndex round) const;

  const CoreConfig& config_;
  std::map<std::pair<RoundIndex, KeyId>, bool> drawn_;
  std::map<KeyId, std::uint32_t> confirmed_;  // rounds, in this life of the master
};

inline bool AuditSampler::is_drawn(const KeyId& who, RoundIndex round) {
  if (config_.audit == AuditMode::kAll) return true;
  const auto [drawn, is_new] = drawn_.try_emplace({round, who}, true);
  if (is_new && confirmed_[who] >= config_.newcomer_rounds) {
    drawn->second = lot_of(who, round) < config_.audit_share;
  }
  return drawn->second;
}

inline void AuditSampler::forget_before(RoundIndex checkpoint) {
  std::erase_if(drawn_, [&](const auto& entry) { return entry.first.first < checkpoint; });
}

inline double AuditSampler::lot_of(const KeyId& who, RoundIndex round) const {
  const std::array<std::uint64_t, 4> words{config_.audit_secret, who.high, who.low, round};
  Sha256 sha;
  sha.update({reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words});
  std::uint64_t bits = 0;
  std::memcpy(&bits, sha.finish_bytes().data(), sizeof bits);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace gleaner
