// Draws which rounds of which volunteers are audited. Under `adaptive` all of a stranger's first
// rounds are drawn, and later rounds by a lot that nobody can foresee without the secret. Used from
// the core only.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

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

}  // namespace gleaner
