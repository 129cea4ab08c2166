// Receipts of the latest rounds, for the page: who made each shard what it is, and who did the work
// again. A bounded number of them; `gleaner receipts` has all. Belongs to the server's thread.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "common/ids.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The rounds that are kept have no more receipts together, but for the last one.
inline constexpr std::size_t kReceiptsKept = 20'000;

struct LoggedReceipts {
  RoundIndex round = 0;
  std::shared_ptr<const Receipts> receipts;
  std::uint64_t examples = 0;  // of the round; 0 when it is another process's
};

class ReceiptLog {
 public:
  // Rounds come in ascending order. One that is trained again takes the place of itself and of
  // those after it.
  void add(LoggedReceipts round);

  void clear() { *this = {}; }

  [[nodiscard]] const std::deque<LoggedReceipts>& rounds() const { return rounds_; }

  // Null when it is not kept.
  [[nodiscard]] const LoggedReceipts* find(RoundIndex round) const;

  // The checkpoint up to which nobody's work went unchecked, of the rounds that are kept: each
  // shard is the work of somebody who is trusted, or an auditor got the same. 0 while none is kept.
  [[nodiscard]] RoundIndex checked_up_to() const;

 private:
  std::deque<LoggedReceipts> rounds_;
  std::size_t count_ = 0;
};

// The latest rounds of a store, as many as a log keeps.
Result<std::vector<LoggedReceipts>> latest_receipts(RunStore& store);

}  // namespace gleaner
