// Checks the ledger: accounts, receipts and lease epochs.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "common/model/run_plan.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/keys.hpp"

namespace gleaner {
namespace {

// Whether the text is the receipts of a round of the run, one per shard.
bool are_receipts(std::string_view text, RoundIndex round, const CheckedRun& run) {
  const auto receipts = decode_receipts(text);
  if (!receipts) return false;
  if (!run.model) return true;
  if (round >= RunPlan(*run.model).round_count()) return false;
  const std::uint32_t shards = ShardMap(*run.model).shard_count();
  return receipts->shards.size() == shards && raw(receipts->shards.back().shard) == shards - 1;
}

// Whether the parts add up to more than `all`. Subtracts one by one, so that no sum overflows.
bool are_more(std::initializer_list<std::uint64_t> parts, std::uint64_t all) {
  for (const std::uint64_t part : parts) {
    if (part > all) return true;
    all -= part;
  }
  return false;
}

}  // namespace

void check_ledger(Store& store, const CheckedRun& run, Findings& findings,
                  const CheckHooks& hooks) {
  bool has_units = false;
  bool has_epochs = false;
  const ByteView epoch_key = lease_epoch_key();
  const auto visit = [&](ByteView key, ByteView record, ByteView payload) {
    if (std::ranges::equal(key, epoch_key)) {
      has_epochs = true;
      const auto epochs = decode_record<LeaseEpochRecord>(as_text(payload));
      if (!epochs || epochs->next == 0) {
        findings.add(Table::kLedger, key, "it is not a record of lease epochs");
      } else {
        hooks.on_record(Table::kLedger, key, record);
      }
      return;
    }
    if (const auto round = decode_receipts_key(key)) {
      if (are_receipts(as_text(payload), *round, run)) {
        hooks.on_record(Table::kLedger, key, record);
      } else {
        findings.add(Table::kLedger, key, "these are not the receipts of a round, one per shard");
      }
      return;
    }
    if (!decode_account_key(key)) {
      findings.add(Table::kLedger, key, "it is not the key of an account");
      return;
    }
    const auto account = decode_record<AccountRecord>(as_text(payload));
    if (!account) {
      findings.add(Table::kLedger, key, "it is not an account");
      return;
    }
    has_units |= account->units_issued > 0;
    if (are_more({account->units, account->units_refused, account->units_expired},
                 account->units_issued)) {
      findings.add(Table::kLedger, key,
                   fmt::format("more units ended ({} answered, {} refused, {} expired) than the "
                               "{} that were sent",
                               account->units, account->units_refused, account->units_expired,
                               account->units_issued));
      return;
    }
    for (const Traffic* t : {&account->down, &account->up}) {
      if (!are_more({t->units, t->evaluation, t->commits, t->shards, t->points}, t->all)) continue;
      findings.add(Table::kLedger, key,
                   fmt::format("its bytes by kind are more than the {} of all", t->all));
      return;
    }
    hooks.on_record(Table::kLedger, key, record);
  };
  const std::uint64_t before = findings.count();
  const bool is_whole = walk_records(store, Table::kLedger, {}, {}, findings, visit);
  if (!is_whole || has_epochs || !has_units || findings.count() != before) return;
  findings.add(Table::kLedger, epoch_key, "it is missing");
}

}  // namespace gleaner
