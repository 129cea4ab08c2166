// A hundred kinds of damage, each of them found; none in a healthy store.
#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/counter_random.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/record.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"
#include "tests/unit/tools/sound_run.hpp"
#include "tests/unit/tools/store_damage.hpp"

namespace gleaner {
namespace {

using test::entries;
using test::healthy;
using test::kDamageCheckpoint;
using test::Kind;
using test::Patient;
using test::Places;
using test::require_ok;
using test::word;

std::uint64_t audit(Store& store) {
  Findings findings;
  check_store(store, findings);
  for (const Finding& finding : findings.kept()) {
    UNSCOPED_INFO(finding.check << " | " << finding.where << " | " << finding.what);
    CHECK_FALSE(finding.what.empty());
  }
  return findings.count();
}

}  // namespace

TEST_CASE("audit: nothing is wrong with a healthy store, at any checkpoint", "[audit]") {
  for (RoundIndex checkpoint = 0; checkpoint <= 8; ++checkpoint) {
    INFO("checkpoint " << checkpoint);
    MemoryStore disk;
    const auto made = test::make_sound_run(disk.share(), std::min<RoundIndex>(checkpoint, 7));
    require_ok(made);
    CHECK(audit(disk) == 0);
  }
}

TEST_CASE("audit: every kind of damage is found", "[audit]") {
  const std::vector<Kind> kinds = test::all_kinds();
  std::set<std::string> names;
  for (const Kind& kind : kinds) names.insert(kind.name);
  CHECK(names.size() == kinds.size());
  CHECK(names.size() >= 150);
  for (const Kind& kind : kinds) {
    INFO(kind.name);
    Patient patient;
    kind.damage(patient);
    CHECK(audit(patient.disk()) > 0);
  }
}

TEST_CASE("audit: any one bit of any record is found, and only its record named", "[audit]") {
  Rng random(1, Purpose::kTest, 5);
  for (std::size_t t = 0; t < kTableCount; ++t) {
    const auto table = static_cast<Table>(t);
    for (const auto& [key, record] : entries(*healthy(1, kDamageCheckpoint).copy(), table)) {
      INFO(table_name(table) << ", " << describe_key(table, key));
      Patient patient;
      Bytes changed = record;
      const std::uint64_t bit = random.next_below(changed.size() * 8);
      changed[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
      patient.put(table, key, changed);
      Findings findings;
      check_store(patient.disk(), findings);
      REQUIRE(findings.count() > 0);
      const bool is_named = std::ranges::any_of(findings.kept(), [&](const Finding& finding) {
        return finding.check == table_name(table) && finding.where == describe_key(table, key);
      });
      CHECK(is_named);
    }
  }
}

TEST_CASE("audit: everything wrong is listed, not the first", "[audit]") {
  Patient patient;
  const Places at = test::places();
  for (const Bytes& key : {at.row, at.other_row, at.foreign_row}) patient.erase(Table::kCodes, key);
  patient.erase(Table::kHistory, at.history);
  patient.reseal(Table::kLedger, at.account, "atlas");
  patient.reseal(Table::kRun, word("identitx"), "{}");
  CHECK(audit(patient.disk()) == 6);
}

}  // namespace gleaner
