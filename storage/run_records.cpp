#include "storage/run_records.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>

#include "common/limits.hpp"
#include "common/model/run_plan.hpp"

namespace gleaner {
namespace {

using nlohmann::json;

template <typename Visit>
void visit_fields(IdentityRecord& r, const Visit& visit) {
  visit("store_version", r.store_version);
  visit("model", r.model);
}

template <typename Visit>
void visit_fields(ProgressRecord& r, const Visit& visit) {
  visit("checkpoint", r.checkpoint);
  visit("batches", r.batches);
  visit("rate_cuts", r.rate_cuts);
}

template <typename Visit>
void visit_fields(ShardDigest& r, const Visit& visit) {
  visit("rows", r.rows);
  visit("sum", r.sum);
}

template <typename Visit>
void visit_fields(LeaseEpochRecord& r, const Visit& visit) {
  visit("next", r.next);
}

template <typename Visit>
void visit_fields(BackupRecord& r, const Visit& visit) {
  visit("checkpoint", r.checkpoint);
  visit("run", r.run);
}

bool read(const json& value, bool& target) {
  if (!value.is_boolean()) return false;
  target = value.get<bool>();
  return true;
}

bool read(const json& value, double& target) {
  if (!value.is_number()) return false;
  target = value.get<double>();
  return true;
}

bool read(const json& value, std::string& target) {
  if (!value.is_string()) return false;
  target = value.get<std::string>();
  return true;
}

bool read(const json& value, WorkVerdict& target) {
  if (!value.is_string()) return false;
  const auto name = std::ranges::find(kWorkVerdictNames, value.get_ref<const std::string&>());
  if (name == kWorkVerdictNames.end()) return false;
  target = static_cast<WorkVerdict>(name - kWorkVerdictNames.begin());
  return true;
}

bool read(const json& value, std::map<std::string, std::string>& target) {
  if (!value.is_object()) return false;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return false;
    target[key] = text.get<std::string>();
  }
  return true;
}

template <std::integral T>
bool read(const json& value, T& target) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (!std::in_range<T>(number)) return false;
    target = static_cast<T>(number);
    return true;
  }
  const auto number = value.get<std::int64_t>();
  if (!std::in_range<T>(number)) return false;
  target = static_cast<T>(number);
  return true;
}

bool read(const json& value, Micros& target) {
  std::uint64_t count = 0;
  if (!read(value, count) || !std::in_range<Micros::rep>(count)) return false;
  target = Micros(static_cast<Micros::rep>(count));
  return true;
}

bool read(const json& value, std::vector<BatchIndex>& target) {
  if (!value.is_array()) return false;
  for (const json& entry : value) {
    if (!read(entry, target.emplace_back())) return false;
  }
  return true;
}

// Bytes that are not UTF-8 (in a volunteer's name) are replaced rather than refused.
std::string to_text(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

template <typename T>
const T& as_json(const T& value) {
  return value;
}

// JSON has no NaN; what is not a number could not be measured.
double as_json(double value) {
  return std::isfinite(value) ? value : -1.0;
}

Micros::rep as_json(Micros value) {
  return value.count();
}

std::string_view as_json(WorkVerdict verdict) {
  return name_of(verdict);
}

// By value, because visit_fields wants fields that can be written.
template <typename Record>
json to_json(Record record) {
  json object = json::object();
  visit_fields(record, [&](const char* name, const auto& value) { object[name] = as_json(value); });
  return object;
}

template <typename Record>
std::optional<Record> from_json(const json& object) {
  if (!object.is_object()) return std::nullopt;
  Record record;
  bool is_readable = true;
  visit_fields(record, [&](const char* name, auto& value) {
    const auto field = object.find(name);
    if (field != object.end() && !read(*field, value)) is_readable = false;
  });
  if (!is_readable) return std::nullopt;
  return record;
}

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
  std::map<std::string, std::size_t> numbers;  // of people
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
