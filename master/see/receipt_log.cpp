#include "master/see/receipt_log.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "common/access/standing.hpp"
#include "common/console/terminal.hpp"
#include "master/see/json_values.hpp"
#include "master/see/view_json.hpp"

namespace gleaner {

void ReceiptLog::add(LoggedReceipts round) {
  while (!rounds_.empty() && rounds_.back().round >= round.round) {
    count_ -= rounds_.back().receipts->shards.size();
    rounds_.pop_back();
  }
  count_ += round.receipts->shards.size();
  rounds_.push_back(std::move(round));
  while (count_ > kReceiptsKept && rounds_.size() > 1) {
    count_ -= rounds_.front().receipts->shards.size();
    rounds_.pop_front();
  }
}

const LoggedReceipts* ReceiptLog::find(RoundIndex round) const {
  const auto found = std::ranges::lower_bound(rounds_, round, {}, &LoggedReceipts::round);
  return found == rounds_.end() || found->round != round ? nullptr : &*found;
}

RoundIndex ReceiptLog::checked_up_to() const {
  if (rounds_.empty()) return 0;
  for (const LoggedReceipts& round : rounds_) {
    const bool is_checked =
        round.receipts->unaudited.empty() &&
        std::ranges::none_of(round.receipts->shards, [](const Receipt& receipt) {
          return receipt.verdict == WorkVerdict::kUnaudited;
        });
    if (!is_checked) return round.round;
  }
  return rounds_.back().round + 1;
}

Result<std::vector<LoggedReceipts>> latest_receipts(RunStore& store) {
  const std::size_t shards = std::max<std::size_t>(1, store.shard_map().shard_count());
  const auto rounds = static_cast<RoundIndex>(kReceiptsKept / shards + 1);
  const RoundIndex end = store.checkpoint();
  std::vector<LoggedReceipts> latest;
  for (RoundIndex round = end - std::min(end, rounds); round < end; ++round) {
    auto stored = store.receipts(round);
    if (!stored) return stored.error();
    latest.push_back({round, std::make_shared<const Receipts>(std::move(*stored))});
  }
  return latest;
}

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
    // The master's own work is nobody's credit, and accounts have no examples of input shards
    // either.
    if (receipt.holder == KeyId{} || raw(receipt.shard) >= output_shards) continue;
    CheckedWork& work = work_of(receipt.holder_name);
    (receipt.verdict == WorkVerdict::kConfirmed ? work.confirmed
     : receipt.verdict == WorkVerdict::kTrusted ? work.trusted
                                                : work.unaudited) += round.examples;
    if (receipt.auditor != KeyId{}) work_of(receipt.auditor_name).audited += round.examples;
  }
}

CheckedWork CreditTally::of(const std::string& name) const {
  const auto found = work_.find(name);
  return found == work_.end() ? CheckedWork() : found->second;
}

std::string receipts_json(const ReceiptLog& log, RoundIndex round, std::size_t first,
                          std::size_t count, const PageView* people) {
  std::map<std::string_view, std::uint64_t> verdicts;
  for (const std::string_view name : kWorkVerdictNames) verdicts[name] = 0;
  Json receipts = Json::array();
  const LoggedReceipts* const found = log.find(round);
  const std::vector<Receipt> none;
  const std::vector<Receipt>& all = found != nullptr ? found->receipts->shards : none;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Receipt& receipt = all[i];
    ++verdicts[name_of(receipt.verdict)];
    if (people == nullptr || i < first || i - first >= count) continue;
    const bool has_auditor = receipt.auditor != KeyId{};
    receipts.push_back(
        {{"shard", raw(receipt.shard)},
         {"holder", printable(receipt.holder_name)},
         {"holder_key", receipt.holder == KeyId{} ? Json() : Json(to_text(receipt.holder))},
         {"auditor", has_auditor ? Json(printable(receipt.auditor_name)) : Json()},
         {"auditor_key", has_auditor ? Json(to_text(receipt.auditor)) : Json()},
         {"verdict", name_of(receipt.verdict)}});
  }
  Json banned = people == nullptr ? Json() : Json::array();
  for (const BanShown& ban : people == nullptr ? std::vector<BanShown>() : people->banned) {
    banned.push_back(
        {{"key", ban.key}, {"name", printable(ban.name)}, {"reason", printable(ban.reason)}});
  }
  const auto& rounds = log.rounds();
  return dump({{"checked_up_to", log.checked_up_to()},
               {"first_round", rounds.empty() ? Json() : Json(rounds.front().round)},
               {"last_round", rounds.empty() ? Json() : Json(rounds.back().round)},
               {"round", round},
               {"shards", all.size()},
               {"verdicts", verdicts},
               {"receipts", std::move(receipts)},
               {"banned", std::move(banned)}});
}

}  // namespace gleaner
