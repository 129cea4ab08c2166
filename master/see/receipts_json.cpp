#include <map>
#include <string_view>
#include <vector>

#include "common/access/standing.hpp"
#include "master/see/json_values.hpp"
#include "master/see/view_json.hpp"

namespace gleaner {

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
