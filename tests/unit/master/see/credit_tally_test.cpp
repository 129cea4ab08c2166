#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "master/see/receipt_log.hpp"

namespace gleaner {
namespace {

Receipt receipt(std::uint32_t shard, const char* holder, WorkVerdict verdict,
                const char* auditor = "") {
  Receipt made;
  made.shard = ShardId{shard};
  made.holder = KeyId{1, shard};
  made.holder_name = holder;
  made.verdict = verdict;
  made.auditor_name = auditor;
  if (!made.auditor_name.empty()) made.auditor = KeyId{2, shard};
  return made;
}

LoggedReceipts round(std::vector<Receipt> shards, std::uint64_t examples) {
  return {0, std::make_shared<const Receipts>(Receipts{std::move(shards), {}}), examples};
}

}  // namespace

TEST_CASE("credit tally: what is confirmed, vouched for or done again counts, and nothing else",
          "[http]") {
  CreditTally tally;
  const std::vector<Receipt> shards{
      receipt(0, "ann", WorkVerdict::kConfirmed, "bob"), receipt(1, "ann", WorkVerdict::kUnaudited),
      receipt(2, "bob", WorkVerdict::kUnaudited), receipt(3, "carl", WorkVerdict::kTrusted),
      receipt(4, "carl", WorkVerdict::kTrusted)};  // a shard of the input layer
  tally.add(round(shards, 100), 4);
  tally.add(round(shards, 28), 4);
  REQUIRE(tally.of("ann").confirmed == 128);
  REQUIRE(tally.of("ann").unaudited == 128);
  REQUIRE(tally.of("ann").credit() == 128);
  REQUIRE(tally.of("bob").audited == 128);
  REQUIRE(tally.of("bob").credit() == 128);
  REQUIRE(tally.of("carl").credit() == 128);
  REQUIRE(tally.of("dora").all() == 0);
}

TEST_CASE("credit tally: the master's own work is nobody's", "[http]") {
  CreditTally tally;
  Receipt own = receipt(0, "the master", WorkVerdict::kTrusted);
  own.holder = KeyId{};
  tally.add(round({own}, 100), 1);
  REQUIRE(tally.of("the master").all() == 0);
}

TEST_CASE("credit tally: names without end take the place of who did least", "[http]") {
  CreditTally tally;
  tally.add(round({receipt(0, "ann", WorkVerdict::kTrusted)}, 1000), 1);
  for (std::size_t i = 0; i < CreditTally::kNamesMax + 3; ++i) {
    tally.add(
        round({receipt(0, fmt::format("n{}", i).c_str(), WorkVerdict::kUnaudited)}, 1 + i % 7), 1);
  }
  REQUIRE(tally.of("ann").trusted == 1000);
  REQUIRE(tally.of("n0").all() == 0);
  REQUIRE(tally.of(fmt::format("n{}", CreditTally::kNamesMax + 2)).all() > 0);
}

}  // namespace gleaner
