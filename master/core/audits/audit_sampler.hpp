// Which rounds of which volunteers are audited. Under `adaptive` a stranger's first rounds all are,
// and later ones as a lot falls that nobody can foresee without the secret. Used from the core
// only.
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

  // Whether what `who`, a stranger, does in the round is audited. The answer for a round stays.
  [[nodiscard]] bool is_drawn(const KeyId& who, RoundIndex round);

  // The round is audited, whatever the lot said.
  void draw(const KeyId& who, RoundIndex round) { drawn_[{round, who}] = true; }

  // All that it did in one round was confirmed.
  void confirmed(const KeyId& who) { ++confirmed_[who]; }

  void forget_before(RoundIndex checkpoint);

 private:
  // From [0, 1); the same for the same secret, volunteer and round.
  [[nodiscard]] double lot_of(const KeyId& who, RoundIndex round) const;

  const CoreConfig& config_;
  std::map<std::pair<RoundIndex, KeyId>, bool> drawn_;
  std::map<KeyId, std::uint32_t> confirmed_;  // rounds, in this life of the master
};

}  // namespace gleaner
