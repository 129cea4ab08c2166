#include "master/http/credit_tally.hpp"

#include <algorithm>

#include "common/console/terminal.hpp"

namespace gleaner {

CheckedWork& CreditTally::work_of(const std::string& name) {
  const std::string shown = printable(name);
  if (work_.size() >= kNamesMax && !work_.contains(shown)) {
    work_.erase(
        std::ranges::min_element(work_, {}, [](const auto& entry) { return entry.second.all(); }));
  }
  return work_[shown];
}

void CreditTally::add(const LoggedReceipts& round, std::uint32_t output_shards) {
  for (const Receipt& receipt : round.receipts->shards) {
    // The master's own work is nobody's, and accounts have no examples of input shards either.
    if (receipt.holder == KeyId{} || raw(receipt.shard) >= output_shards) continue;
    CheckedWork& work = work_of(receipt.holder_name);
    if (receipt.verdict == "confirmed") {
      work.confirmed += round.examples;
    } else if (receipt.verdict == "trusted") {
      work.trusted += round.examples;
    } else {
      work.unaudited += round.examples;
    }
    if (receipt.auditor != KeyId{}) work_of(receipt.auditor_name).audited += round.examples;
  }
}

CheckedWork CreditTally::of(const std::string& name) const {
  const auto found = work_.find(name);
  return found == work_.end() ? CheckedWork() : found->second;
}

}  // namespace gleaner
