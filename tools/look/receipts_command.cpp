#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "common/access/standing.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

struct ReceiptsFlags {
  std::string folder;
  std::optional<RoundIndex> round;
  bool json = false;
  bool csv = false;
};

Cell key_cell(const KeyId& key) {
  return key == KeyId{} ? cell_none() : cell_text(to_text(key));
}

Cell name_cell(const std::string& name) {
  return name.empty() ? cell_none() : cell_text(name);
}

void add_shards(Report& report, const std::vector<RoundReceipts>& rounds) {
  ReportTable& table = report.table("receipts", {{"round", ""},
                                                 {"shard", ""},
                                                 {"rows", ""},
                                                 {"digest", ""},
                                                 {"holder", ""},
                                                 {"holder_name", ""},
                                                 {"auditor", ""},
                                                 {"auditor_name", ""},
                                                 {"verdict", ""}});
  for (const RoundReceipts& round : rounds) {
    for (const Receipt& receipt : round.receipts.shards) {
      table.rows.push_back(
          {cell_count(round.round), cell_count(raw(receipt.shard)), cell_count(receipt.digest.rows),
           cell_text(fmt::format("{:016x}", receipt.digest.sum)), key_cell(receipt.holder),
           name_cell(receipt.holder_name), key_cell(receipt.auditor),
           name_cell(receipt.auditor_name), cell_text(name_of(receipt.verdict))});
    }
  }
}

// Keys of strangers of whose work in a round nobody did any again.
void add_unaudited(Report& report, const std::vector<RoundReceipts>& rounds) {
  ReportTable& table = report.table("unaudited", {{"round", ""}, {"key", ""}});
  for (const RoundReceipts& round : rounds) {
    for (const KeyId& key : round.receipts.unaudited) {
      table.rows.push_back({cell_count(round.round), key_cell(key)});
    }
  }
}

void add_people(Report& report, const std::vector<RoundReceipts>& rounds) {
  ReportTable& table = report.table("receipts", {{"round", "round"},
                                                 {"shards", "shards"},
                                                 {"holder", "holder", true},
                                                 {"auditor", "auditor", true},
                                                 {"verdict", "verdict", true}});
  std::map<WorkVerdict, std::uint64_t> verdicts;
  std::uint64_t without = 0;
  for (const RoundReceipts& round : rounds) {
    without += round.receipts.shards.empty();
    std::map<std::tuple<std::string, std::string, WorkVerdict>, std::uint64_t> shards;
    for (const Receipt& receipt : round.receipts.shards) {
      ++shards[{receipt.holder_name, receipt.auditor_name, receipt.verdict}];
      ++verdicts[receipt.verdict];
    }
    for (const auto& [who, count] : shards) {
      const auto& [holder, auditor, verdict] = who;
      table.rows.push_back({cell_count(round.round), cell_count(count), name_cell(holder),
                            name_cell(auditor), cell_text(name_of(verdict))});
    }
  }
  report.text(fmt::format(
      "Of all shards in all these rounds: {} confirmed by an auditor who did the same work, {} of\n"
      "the master or volunteers that somebody vouches for, {} of strangers whom nobody audited.\n",
      verdicts[WorkVerdict::kConfirmed], verdicts[WorkVerdict::kTrusted],
      verdicts[WorkVerdict::kUnaudited]));
  const auto partly = std::ranges::count_if(
      rounds, [](const RoundReceipts& round) { return !round.receipts.unaudited.empty(); });
  if (partly > 0) {
    report.text(fmt::format("Rounds in which a stranger took part unaudited: {}.\n", partly));
  }
  if (without > 0) report.text(fmt::format("Rounds without receipts: {}.\n", without));
}

Result<std::vector<RoundReceipts>> read_receipts(RunStore& run, std::optional<RoundIndex> only) {
  if (only && *only >= run.checkpoint()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("round {} is not folded: the store is at checkpoint {}", *only,
                             run.checkpoint())};
  }
  std::vector<RoundReceipts> rounds;
  const RoundIndex begin = only.value_or(0);
  const RoundIndex end = only ? *only + 1 : run.checkpoint();
  for (RoundIndex round = begin; round < end; ++round) {
    auto receipts = run.receipts(round);
    if (!receipts) return receipts.error();
    rounds.push_back({round, std::move(*receipts)});
  }
  return rounds;
}

}  // namespace

Report receipts_report(const std::vector<RoundReceipts>& rounds, ReportForm form) {
  Report report;
  if (form == ReportForm::kPeople) {
    add_people(report, rounds);
  } else {
    add_shards(report, rounds);
    if (form == ReportForm::kJson) add_unaudited(report, rounds);  // CSV has one table
  }
  return report;
}

void add_receipts_command(CLI::App& app, int& exit_status) {
  CLI::App& receipts = *app.add_subcommand(
      "receipts", "who made the shards of each checkpoint, and who did the work again");
  auto flags = std::make_shared<ReceiptsFlags>();
  add_store(receipts, flags->folder);
  receipts.add_option("--round", flags->round, "only this round, counted from 0");
  CLI::Option* const json =
      receipts.add_flag("--json", flags->json, "one JSON object with a receipt for every shard");
  receipts.add_flag("--csv", flags->csv, "the same receipts as CSV")->excludes(json);
  receipts.footer(
      std::string("Round N leads to checkpoint N + 1. A digest is that of the shard after the "
                  "round; verify\n--deep trains rounds again and compares digests. May be asked "
                  "for while the master runs.\n\n"
                  "Examples:\n"
                  "  gleaner receipts run1\n"
                  "  gleaner receipts run1 --json | jq '.receipts[] | select(.verdict != "
                  "\"confirmed\")'\n\n") +
      kStoreExitCodes);
  receipts.callback([flags, &exit_status] {
    exit_status = run_on_store(flags->folder, [&](RunStore& run) -> Result<void> {
      const auto rounds = read_receipts(run, flags->round);
      if (!rounds) return rounds.error();
      const ReportForm form = report_form(flags->json, flags->csv);
      return print_report(receipts_report(*rounds, form), form, "receipts", flags->folder);
    });
  });
}

}  // namespace gleaner
