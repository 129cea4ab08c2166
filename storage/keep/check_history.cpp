// Checks the history: a sound record for each checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/model/run_plan.hpp"
#include "storage/keep/store_check.hpp"
#include "storage/keys.hpp"

namespace gleaner {
namespace {

// A measured fraction lies between 0 and 1.
bool is_fraction(double value) {
  return value < 0 || value <= 1;
}

std::optional<std::string> history_fault(const RoundRecord& record, RoundIndex key,
                                         const CheckedRun& run) {
  if (record.checkpoint != key) return "it is not a history record of its key";
  bool are_fractions = true;
  visit_depths(record.precision, [&](const char*, const char*, double value) {
    are_fractions &= is_fraction(value);
  });
  if (!are_fractions) return "it has a precision above 1";
  if (!run.model || !run.progress) return std::nullopt;
  if (key == 0 || key > run.progress->checkpoint) return "the run has no such checkpoint";
  const RunPlan plan(*run.model);
  if (record.batches != plan.round_begin(key)) {
    return fmt::format("it counts {} batches, and the run has {} by then", record.batches,
                       plan.round_begin(key));
  }
  const auto cuts = std::ranges::count_if(
      run.progress->rate_cuts, [&](BatchIndex cut) { return cut <= plan.round_begin(key - 1); });
  if (std::cmp_not_equal(record.rate_cuts, cuts)) {
    return fmt::format("it counts {} halvings of the rates, and the run's progress has {} by then",
                       record.rate_cuts, cuts);
  }
  if (key != run.progress->checkpoint || record.rows_digest == 0) return std::nullopt;
  std::vector<ShardDigest> digests;
  for (const std::optional<ShardDigest>& digest : run.digests) {
    if (!digest) return std::nullopt;
    digests.push_back(*digest);
  }
  if (record.rows_digest != rows_digest(digests)) return "its digest is not that of the shards";
  return std::nullopt;
}

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

void check_history(Store& store, const CheckedRun& run, Findings& findings,
                   const CheckHooks& hooks) {
  std::vector<bool> is_there(run.progress ? run.progress->checkpoint + 1 : 0);
  const std::uint64_t before = findings.count();
  const bool is_whole = walk_records(
      store, Table::kHistory, {}, {}, findings,
      [&](ByteView key, ByteView record, ByteView payload) {
        const std::optional<RoundIndex> checkpoint = decode_history_key(key);
        if (!checkpoint) {
          findings.add(Table::kHistory, key, "it is not the key of a checkpoint");
          return;
        }
        if (*checkpoint < is_there.size()) is_there[*checkpoint] = true;
        const auto decoded = decode_record<RoundRecord>(as_text(payload));
        const auto wrong = decoded ? history_fault(*decoded, *checkpoint, run)
                                   : std::optional<std::string>("it is not a history record");
        if (wrong) {
          findings.add(Table::kHistory, key, *wrong);
        } else {
          hooks.on_record(Table::kHistory, key, record);
        }
      });
  if (!is_whole) return;
  for (RoundIndex checkpoint = 1; checkpoint < is_there.size(); ++checkpoint) {
    if (is_there[checkpoint]) continue;
    const HistoryKeyBytes key = encode_history_key(checkpoint);
    // A damaged record exists, and has been reported already.
    const auto record = store.get(Table::kHistory, key);
    const bool is_damaged = findings.count() != before && record && record->has_value();
    if (!is_damaged) findings.add(Table::kHistory, key, "it is missing");
  }
}

// Checks the ledger: accounts, receipts and lease epochs.
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
