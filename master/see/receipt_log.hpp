// Receipts of the latest rounds, for the page: who trained each shard, and who repeated the work.
// Bounded; `gleaner receipts` shows all. Belongs to the server's thread.
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

// The kept rounds have at most this number of receipts, or are a single round.
inline constexpr std::size_t kReceiptsKept = 20'000;

struct LoggedReceipts {
  RoundIndex round = 0;
  std::shared_ptr<const Receipts> receipts;
  std::uint64_t examples = 0;  // of the round; 0 for a round of another process
};

class ReceiptLog {
 public:
  // Adds a round; rounds come in ascending order. A round that is trained again replaces itself and
  // later rounds.
  void add(LoggedReceipts round);

  void clear() { *this = {}; }

  [[nodiscard]] const std::deque<LoggedReceipts>& rounds() const { return rounds_; }

  // Null when the round is not kept.
  [[nodiscard]] const LoggedReceipts* find(RoundIndex round) const;

  // The checkpoint up to which all work in the kept rounds was checked: each shard is a trusted
  // volunteer's work, or an auditor got the same. 0 while no round is kept.
  [[nodiscard]] RoundIndex checked_up_to() const;

 private:
  std::deque<LoggedReceipts> rounds_;
  std::size_t count_ = 0;
};

// The latest rounds of a store, up to a log's bound.
Result<std::vector<LoggedReceipts>> latest_receipts(RunStore& store);

// A volunteer's work in whole rounds of this process, by how it was checked, in examples x output
// shards. Contributors may be ranked by credit(). Work that the run trains again counts each time.
struct CheckedWork {
  std::uint64_t confirmed = 0;  // an auditor got the same
  std::uint64_t trusted = 0;    // somebody vouches for the volunteer, so that nobody audits it
  std::uint64_t unaudited = 0;
  std::uint64_t audited = 0;  // work of others that it repeated with the same result

  [[nodiscard]] std::uint64_t credit() const { return confirmed + trusted + audited; }

  [[nodiscard]] std::uint64_t all() const { return credit() + unaudited; }
};

class CreditTally {
 public:
  // At most this number of names: the name with the least work is forgotten.
  static constexpr std::size_t kNamesMax = 20'000;

  void add(const LoggedReceipts& round, std::uint32_t output_shards);

  // By the printable form of the volunteer's name.
  [[nodiscard]] CheckedWork of(const std::string& name) const;

 private:
  CheckedWork& work_of(const std::string& name);

  std::map<std::string, CheckedWork> work_;
};

}  // namespace gleaner
