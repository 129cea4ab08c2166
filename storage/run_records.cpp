#include "storage/run_records.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/limits.hpp"
#include "common/model/run_plan.hpp"
#include "storage/json_fields.hpp"

namespace gleaner {
namespace {

using nlohmann::json;

}  // namespace

template <typename Record>
std::string encode_record(const Record& record) {
  return to_text(to_json(record));
}

template <typename Record>
std::optional<Record> decode_record(std::string_view text) {
  return from_json<Record>(json::parse(text, nullptr, /*allow_exceptions=*/false));
}

template std::string encode_record(const IdentityRecord&);
template std::optional<IdentityRecord> decode_record(std::string_view);
template std::string encode_record(const ProgressRecord&);
template std::optional<ProgressRecord> decode_record(std::string_view);
template std::string encode_record(const ShardDigest&);
template std::optional<ShardDigest> decode_record(std::string_view);
template std::string encode_record(const LeaseEpochRecord&);
template std::optional<LeaseEpochRecord> decode_record(std::string_view);
template std::string encode_record(const RoundRecord&);
template std::optional<RoundRecord> decode_record(std::string_view);
template std::string encode_record(const BackupRecord&);
template std::optional<BackupRecord> decode_record(std::string_view);
template std::string encode_record(const AccountRecord&);
template std::optional<AccountRecord> decode_record(std::string_view);
template std::string encode_record(const SettledRound&);
template std::optional<SettledRound> decode_record(std::string_view);

std::string encode_settings(const std::map<std::string, std::string>& settings) {
  return to_text(json(settings));
}

std::optional<std::map<std::string, std::string>> decode_settings(std::string_view text) {
  std::map<std::string, std::string> settings;
  if (!read(json::parse(text, nullptr, /*allow_exceptions=*/false), settings)) return std::nullopt;
  return settings;
}

bool is_possible(const ProgressRecord& record, const ModelConfig& model) {
  const RunPlan plan(model);
  return record.checkpoint <= plan.round_count() &&
         record.batches == plan.round_begin(record.checkpoint) &&
         record.rate_cuts.size() <= kRateHalvingsMax && std::ranges::is_sorted(record.rate_cuts) &&
         std::ranges::all_of(record.rate_cuts, [&](BatchIndex cut) {
           return cut <= record.batches && plan.is_round_end(cut);
         });
}

std::string encode_receipts(const Receipts& receipts) {
  json object = json::object();
  json& people = object["people"] = json::array();
  json& shards = object["shards"] = json::array();
  std::map<std::string, std::size_t> numbers;  // index in `people`
  for (const Receipt& receipt : receipts.shards) {
    json who = to_json(receipt);
    const std::size_t number = numbers.try_emplace(to_text(who), numbers.size()).first->second;
    if (number == people.size()) people.push_back(std::move(who));
    shards.push_back({raw(receipt.shard), number, receipt.digest.rows, receipt.digest.sum});
  }
  for (const KeyId& key : receipts.unaudited) object["unaudited"].push_back({key.high, key.low});
  return to_text(object);
}

std::optional<Receipts> decode_receipts(std::string_view text) {
  const json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("people") || !object.contains("shards")) {
    return std::nullopt;
  }
  std::vector<Receipt> people;
  for (const json& who : object["people"]) {
    const auto person = from_json<Receipt>(who);
    if (!person) return std::nullopt;
    people.push_back(*person);
  }
  Receipts receipts;
  for (const json& row : object["shards"]) {
    std::uint32_t shard = 0;
    std::size_t number = 0;
    if (!row.is_array() || row.size() != 4 || !read(row[0], shard) || !read(row[1], number) ||
        number >= people.size()) {
      return std::nullopt;
    }
    Receipt receipt = people[number];
    receipt.shard = ShardId{shard};
    if (!read(row[2], receipt.digest.rows) || !read(row[3], receipt.digest.sum)) {
      return std::nullopt;
    }
    std::vector<Receipt>& all = receipts.shards;
    if (!all.empty() && receipt.shard <= all.back().shard) return std::nullopt;
    all.push_back(std::move(receipt));
  }
  for (const json& row : object.value("unaudited", json::array())) {
    KeyId& key = receipts.unaudited.emplace_back();
    if (!row.is_array() || row.size() != 2 || !read(row[0], key.high) || !read(row[1], key.low)) {
      return std::nullopt;
    }
  }
  return receipts;
}

}  // namespace gleaner
