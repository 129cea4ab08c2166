#include "master/tasks/going_back.hpp"

#include <algorithm>

namespace gleaner {

Result<std::optional<RoundIndex>> first_unaudited(RunStore& run, const std::vector<KeyId>& keys) {
  if (keys.empty()) return std::optional<RoundIndex>();
  for (RoundIndex round = 0; round < run.checkpoint(); ++round) {
    const Result<Receipts> receipts = run.receipts(round);
    if (!receipts) return receipts.error();
    const bool took_part = std::ranges::any_of(receipts->unaudited, [&](const KeyId& key) {
      return std::ranges::find(keys, key) != keys.end();
    });
    if (took_part) return std::optional(round);
  }
  return std::optional<RoundIndex>();
}

}  // namespace gleaner
