#include "master/core/audits/audit_sampler.hpp"

#include <array>
#include <cstring>

#include "common/access/sha256.hpp"

namespace gleaner {

bool AuditSampler::is_drawn(const KeyId& who, RoundIndex round) {
  if (config_.audit == AuditMode::kAll) return true;
  const auto [drawn, is_new] = drawn_.try_emplace({round, who}, true);
  if (is_new && confirmed_[who] >= config_.newcomer_rounds) {
    drawn->second = lot_of(who, round) < config_.audit_share;
  }
  return drawn->second;
}

void AuditSampler::forget_before(RoundIndex checkpoint) {
  std::erase_if(drawn_, [&](const auto& entry) { return entry.first.first < checkpoint; });
}

double AuditSampler::lot_of(const KeyId& who, RoundIndex round) const {
  const std::array<std::uint64_t, 4> words{config_.audit_secret, who.high, who.low, round};
  Sha256 sha;
  sha.update({reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words});
  std::uint64_t bits = 0;
  std::memcpy(&bits, sha.finish_bytes().data(), sizeof bits);
  return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace gleaner
