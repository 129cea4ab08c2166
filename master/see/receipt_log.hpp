// Receipts of the latest rounds, for the page: who made each shard what it is, and who did the work
// again. A bounded number of them; `gleaner receipts` has all. Belongs to the server's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
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

// Adds up, from the receipts of this process's rounds, the work of each volunteer that somebody has
// checked or vouches for: a list of contributors may rank by it. Belongs to the server's thread.
// Work that the run trains again counts each time that it is done.

// Examples x output shards, in rounds that are whole.
struct CheckedWork {
  std::uint64_t confirmed = 0;  // an auditor got the same
  std::uint64_t trusted = 0;    // somebody vouches for the volunteer, so that nobody audits it
  std::uint64_t unaudited = 0;
  std::uint64_t audited = 0;  // of others, done again with their result

  [[nodiscard]] std::uint64_t credit() const { return confirmed + trusted + audited; }

  [[nodiscard]] std::uint64_t all() const { return credit() + unaudited; }
};

class CreditTally {
 public:
  // Beyond these, who did least is forgotten.
  static constexpr std::size_t kNamesMax = 20'000;

  void add(const LoggedReceipts& round, std::uint32_t output_shards);

  // By the name that it goes by, made printable.
  [[nodiscard]] CheckedWork of(const std::string& name) const;

 private:
  CheckedWork& work_of(const std::string& name);

  std::map<std::string, CheckedWork> work_;
};

}  // namespace gleaner
