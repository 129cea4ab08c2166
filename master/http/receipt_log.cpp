#include "master/http/receipt_log.hpp"

#include <algorithm>
#include <utility>

namespace gleaner {

void ReceiptLog::add(RoundReceipts round) {
  while (!rounds_.empty() && rounds_.back().round >= round.round) {
    count_ -= rounds_.back().receipts->size();
    rounds_.pop_back();
  }
  count_ += round.receipts->size();
  rounds_.push_back(std::move(round));
  while (count_ > kReceiptsKept && rounds_.size() > 1) {
    count_ -= rounds_.front().receipts->size();
    rounds_.pop_front();
  }
}

const RoundReceipts* ReceiptLog::find(RoundIndex round) const {
  const auto found = std::ranges::lower_bound(rounds_, round, {}, &RoundReceipts::round);
  return found == rounds_.end() || found->round != round ? nullptr : &*found;
}

RoundIndex ReceiptLog::checked_up_to() const {
  if (rounds_.empty()) return 0;
  for (const RoundReceipts& round : rounds_) {
    const bool is_checked = std::ranges::none_of(
        *round.receipts, [](const Receipt& receipt) { return receipt.verdict == "unaudited"; });
    if (!is_checked) return round.round;
  }
  return rounds_.back().round + 1;
}

Result<std::vector<RoundReceipts>> latest_receipts(RunStore& store) {
  const std::size_t shards = std::max<std::size_t>(1, store.shard_map().shard_count());
  const auto rounds = static_cast<RoundIndex>(kReceiptsKept / shards + 1);
  const RoundIndex end = store.checkpoint();
  std::vector<RoundReceipts> latest;
  for (RoundIndex round = end - std::min(end, rounds); round < end; ++round) {
    auto stored = store.receipts(round);
    if (!stored) return stored.error();
    latest.push_back({round, std::make_shared<const std::vector<Receipt>>(std::move(*stored))});
  }
  return latest;
}

}  // namespace gleaner
