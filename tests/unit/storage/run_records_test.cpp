#include "storage/run_records.hpp"

#include <catch2/catch.hpp>
#include <limits>

namespace gleaner {
namespace {

RoundRecord full_history() {
  RoundRecord record;
  record.checkpoint = 4294967295u;
  record.batches = ~std::uint64_t{0};
  record.epoch = 3;
  record.loss = 0.1 + 0.2;
  record.active = 312.5;
  record.code_length = 4.75;
  record.examples_per_second = 1e5;
  record.volunteers = 7;
  record.bytes_down = 101.25;
  record.bytes_up = 202.5;
  record.evaluated = 1000;
  record.evaluated_all = true;
  record.precision = {{0.6130000000000001, 0.5, 0.4}, {0.3, 0.2, 0.1}, 0.01};
  record.wall_seconds = -5;
  record.rows_digest = ~std::uint64_t{0} - 4;
  return record;
}

TEST_CASE("records: every field survives, to the bit", "[storage]") {
  CHECK(decode_record<RoundRecord>(encode_record(full_history())) == full_history());
  CHECK(decode_record<RoundRecord>(encode_record(RoundRecord{})) == RoundRecord{});

  AccountRecord account;
  account.name = "caf\u00e9 \"7\"\n";
  account.units = 1;
  account.units_issued = 10;
  account.units_refused = 8;
  account.units_expired = 9;
  account.examples = ~std::uint64_t{0};
  account.here = Micros(17);
  account.down = {100, 1, 2, 3, 4, 5};
  account.up = {200, 11, 12, 13, 14, 15};
  account.commits = 5;
  account.faults = 6;
  account.last_seen_wall_seconds = 7;
  CHECK(decode_record<AccountRecord>(encode_record(account)) == account);

  SettledRound settled;
  settled.first = {{}, ~std::uint64_t{0}, -3, 4};
  settled.rest = {{}, 5, std::numeric_limits<std::int64_t>::max(), 6};
  settled.receipt = {{}, {}, {1, 2}, "ann", {3, 4}, "bob", WorkVerdict::kConfirmed};
  CHECK(decode_record<SettledRound>(encode_record(settled)) == settled);

  const auto progress =
      decode_record<ProgressRecord>(encode_record(ProgressRecord{5, 123456789012, {7, 9}}));
  REQUIRE(progress);
  CHECK(progress->rate_cuts == std::vector<BatchIndex>{7, 9});
  CHECK(progress->checkpoint == 5);
  CHECK(progress->batches == 123456789012);
  const ShardDigest digest{5, ~std::uint64_t{0}};
  CHECK(decode_record<ShardDigest>(encode_record(digest)) == digest);
  const auto epoch = decode_record<LeaseEpochRecord>(encode_record(LeaseEpochRecord{99}));
  REQUIRE(epoch);
  CHECK(epoch->next == 99);
  const std::map<std::string, std::string> settings = {{"a.b", "1"}, {"c", "\"x\""}};
  CHECK(decode_settings(encode_settings(settings)) == settings);
  const auto identity = decode_record<IdentityRecord>(encode_record(IdentityRecord{3, settings}));
  REQUIRE(identity);
  CHECK(identity->store_version == 3);
  CHECK(identity->model == settings);
}

TEST_CASE("records: unknown fields are skipped and missing ones have defaults", "[storage]") {
  const auto record =
      decode_record<RoundRecord>(R"({"checkpoint":3,"recall_at_7":{"x":[1,2]},"loss":2})");
  REQUIRE(record);
  RoundRecord expected;
  expected.checkpoint = 3;
  expected.loss = 2;
  CHECK(*record == expected);
}

TEST_CASE("records: text that is no such record is refused", "[storage]") {
  for (const char* text : {"", "{", "[]", "3", "null", "{\"checkpoint\":\"3\"}",
                           "{\"checkpoint\":-1}", "{\"checkpoint\":4294967296}",
                           "{\"checkpoint\":1.5}", "{\"loss\":null}", "{\"evaluated_all\":1}"}) {
    INFO(text);
    CHECK_FALSE(decode_record<RoundRecord>(text).has_value());
  }
  CHECK_FALSE(decode_settings("{\"a\":1}").has_value());
  CHECK_FALSE(decode_settings("[]").has_value());
  CHECK_FALSE(decode_record<AccountRecord>("{\"name\":3}").has_value());
}

TEST_CASE("records: receipts are stored as people and rows of numbers", "[storage]") {
  Receipts receipts;
  receipts.shards = {{ShardId{0}, {5, 6}, {1, 2}, "ann", {3, 4}, "bob", WorkVerdict::kConfirmed},
                     {ShardId{1}, {7, 8}, {}, "the master", {}, "", WorkVerdict::kTrusted},
                     {ShardId{2}, {9, 0}, {1, 2}, "ann", {}, "", WorkVerdict::kUnaudited}};
  receipts.unaudited = {{1, 2}};
  const std::string text = encode_receipts(receipts);
  CHECK(text ==
        R"({"people":[{"auditor_high":3,"auditor_low":4,"auditor_name":"bob","holder_high":1,)"
        R"("holder_low":2,"holder_name":"ann","verdict":"confirmed"},{"auditor_high":0,)"
        R"("auditor_low":0,"auditor_name":"","holder_high":0,"holder_low":0,"holder_name":)"
        R"("the master","verdict":"trusted"},{"auditor_high":0,"auditor_low":0,"auditor_name":"",)"
        R"("holder_high":1,"holder_low":2,"holder_name":"ann","verdict":"unaudited"}],)"
        R"("shards":[[0,0,5,6],[1,1,7,8],[2,2,9,0]],"unaudited":[[1,2]]})");
  CHECK(decode_receipts(text) == receipts);
  CHECK_FALSE(decode_receipts(R"({"people":[{"verdict":"holy"}],"shards":[[0,0,5,6]]})"));
}

TEST_CASE("records: what is not a number counts as not measured", "[storage]") {
  RoundRecord record;
  record.loss = std::numeric_limits<double>::quiet_NaN();
  record.active = std::numeric_limits<double>::infinity();
  const auto decoded = decode_record<RoundRecord>(encode_record(record));
  REQUIRE(decoded);
  CHECK(decoded->loss == -1);
  CHECK(decoded->active == -1);
}

TEST_CASE("records: a name that is not UTF-8 does not stop the account", "[storage]") {
  AccountRecord account;
  account.name = "\xff\xfe";
  account.units = 3;
  const auto decoded = decode_record<AccountRecord>(encode_record(account));
  REQUIRE(decoded);
  CHECK(decoded->units == 3);
}

}  // namespace
}  // namespace gleaner
