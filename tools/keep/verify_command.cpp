#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/result.hpp"
#include "common/train/kernels.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/keep/backup.hpp"
#include "storage/keep/open_to_read.hpp"
#include "storage/keep/store_check.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/keep/verify_deep.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kShownMax = 40;
constexpr std::size_t kWhatWidth = 62;  // --json has all of it

struct VerifyFlags {
  std::string store;
  DeepRequest deep;
  bool is_deep = false;
  bool json = false;
};

// Everything wrong with the store in the folder. An error only when there is no store to look at.
Result<CheckedRun> check_folder(const std::string& folder, Findings& findings) {
  auto store = open_store_to_read(folder);
  if (!store) {
    if (store.error().code != ErrorCode::kCorrupt && store.error().code != ErrorCode::kIo) {
      return store.error();
    }
    findings.add("files", "", "the store does not open: " + brief(store.error().message));
    for (const Error& error : damaged_table_files(folder)) {
      add_file_finding(findings, error);
    }
    return CheckedRun();
  }
  // One of another version is not damaged: its content is not for this program to judge.
  const auto run = open_run_to_read(folder);
  if (!run && run.error().code == ErrorCode::kVersion) return run.error();
  ProgressLine progress("Verifying");
  CheckHooks hooks;
  hooks.on_progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.show(done, total, "rows");
  };
  return check_store(**store, findings, hooks);
}

Report report_of(const CheckedRun& run, const Findings& findings, TextStyle style) {
  Report report;
  const bool is_whole = findings.count() == 0;
  report.fact("is_whole", "store",
              {is_whole, coloured(is_whole ? "whole" : "damaged",
                                  is_whole ? Colour::kGreen : Colour::kRed, style)});
  report.fact("findings_count", "things wrong", cell_count(findings.count()));
  if (run.progress) report.fact("checkpoint", "checkpoint", cell_count(run.progress->checkpoint));
  if (is_whole) {
    report.text(
        "  checked: files, checksums, keys, rows against shard digests, table entries against "
        "weights,\n  staged commits, history, accounts, run identity\n");
    return report;
  }
  std::map<std::string, std::uint64_t> by_check;
  for (const Finding& finding : findings.kept()) ++by_check[finding.check];
  report.section("", "");
  ReportTable& counts = report.table("by_check", {{"check", "where", true}, {"count", "wrong"}});
  for (const auto& [check, count] : by_check) {
    counts.rows.push_back({cell_text(check), cell_count(count)});
  }
  report.section("", "");
  ReportTable& table = report.table(
      "findings", {{"check", "in", true}, {"where", "where", true}, {"what", "what", true}});
  table.people_rows_max = kShownMax;
  for (const Finding& finding : findings.kept()) {
    table.rows.push_back({cell_text(finding.check), cell_text(finding.where),
                          cell_fit(finding.what, kWhatWidth, style)});
  }
  report.text(
      "\nThe master never trains on any of it. gleaner repair --help, or gleaner restore "
      "--help.\n");
  return report;
}

int verify(const VerifyFlags& flags) {
  if (auto level = simd_level_from_environment(); !level) return report_on_store(level.error());
  give_way_to_master(flags.store);
  Findings findings;
  const Result<CheckedRun> run = check_folder(flags.store, findings);
  if (!run) return report_on_store(run.error());
  std::optional<DeepOutcome> deep;
  if (flags.is_deep && findings.count() == 0) {
    auto outcome = verify_deep(flags.store, flags.deep, findings);
    if (!outcome) return report_on_store(outcome.error());
    deep = std::move(*outcome);
  }
  Report report = report_of(*run, findings, terminal_facts(stdout).style);
  if (deep) {
    add_deep(report, *deep);
  } else if (flags.is_deep) {
    report.text("\n  not re-trained: what is found above comes first\n");
  }
  const auto printed = print_report(report, report_form(flags.json), "verify", flags.store);
  if (!printed) return report_on_store(printed);
  return static_cast<int>(findings.count() == 0 ? ExitCode::kOk : ExitCode::kStore);
}

struct RepairFlags {
  std::string store;
  std::string backups;
  std::string target;
  std::uint32_t number = 0;  // 0: the last one
  bool json = false;
};

Result<RepairOutcome> repair_with(const BackupFolder& backups, std::uint32_t number, Store& damaged,
                                  const std::string& target) {
  std::error_code error;
  std::filesystem::remove_all(target, error);
  auto backup = backups.open_store(number);
  if (!backup) return backup.error();
  auto written = open_rocks_store(target, OpenMode::kReadWrite);
  if (!written) return written.error();
  return repair_store(damaged, **backup, **written);
}

// Tries the backups from the last on; if none has all that is damaged, the first outcome counts.
Result<RepairOutcome> repair_into_target(RepairFlags& flags) {
  auto damaged = open_rocks_store(flags.store, OpenMode::kReadOnly);
  if (!damaged) {
    return Error{damaged.error().code,
                 damaged.error().message + "; a store that does not open cannot be repaired"};
  }
  if (const auto named = as_backup(flags.backups); named && named->number != 0) {
    flags = {flags.store, named->folder, flags.target, named->number, flags.json};
  }
  const auto backups = BackupFolder::open(flags.backups, BackupAccess::kRead);
  if (!backups) return backups.error();
  const auto chosen = (*backups)->choose(flags.number);
  if (!chosen) return chosen.error();
  std::vector<Backup> all = (*backups)->list();
  if (flags.number != 0) all = {*chosen};
  std::optional<Result<RepairOutcome>> best;
  for (auto backup = all.rbegin(); backup != all.rend(); ++backup) {
    auto outcome = repair_with(**backups, backup->number, **damaged, flags.target);
    const bool is_whole = outcome && outcome->lost.empty();
    if (is_whole || !best || (!*best && outcome)) {
      flags.number = backup->number;
      best = std::move(outcome);
    }
    if (is_whole) break;
  }
  return std::move(*best);
}

Report report_of(const RepairOutcome& outcome, const Findings& left, const RepairFlags& flags) {
  const bool is_whole = outcome.lost.empty() && left.count() == 0;
  Report report;
  report.fact("is_repaired", "repaired", {is_whole, is_whole ? "yes" : "no"});
  for (const auto& [key, title, steps] :
       {std::tuple("done", "Done", &outcome.done), std::tuple("lost", "Lost", &outcome.lost)}) {
    if (steps->empty()) continue;
    report.section("", title);
    ReportTable& table = report.table(key, {{"where", "where", true}, {"what", "what", true}});
    table.people_rows_max = kShownMax;
    for (const RepairStep& step : *steps) {
      table.rows.push_back({cell_text(step.where), cell_text(step.what)});
    }
  }
  report.section("", "");
  if (is_whole) {
    report.fact("target", "repaired store", cell_text(flags.target));
    report.fact("backup", "with backup", cell_count(flags.number));
    report.text(fmt::format("  {} is as it was. With the master stopped, put {} in its place.\n",
                            flags.store, flags.target));
  } else {
    report.text(
        fmt::format("  No backup has what this checkpoint lost. `gleaner restore {}@{} {} --force` "
                    "goes back to the backup's.\n",
                    flags.backups, flags.number, flags.store));
  }
  return report;
}

int repair(RepairFlags flags) {
  if (auto level = simd_level_from_environment(); !level) return report_on_store(level.error());
  if (flags.target.empty()) flags.target = without_slash(flags.store) + ".repaired";
  std::error_code error;
  if (std::filesystem::exists(flags.target, error)) {
    return report_on_store(Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} exists already: remove it, or name another folder as --to", flags.target)});
  }
  const Result<RepairOutcome> outcome = repair_into_target(flags);
  Findings left;
  if (outcome && outcome->lost.empty()) {
    const auto audited = check_folder(flags.target, left);
    if (!audited) return report_on_store(audited.error());
  }
  const bool is_whole = outcome && outcome->lost.empty() && left.count() == 0;
  if (!is_whole) std::filesystem::remove_all(flags.target, error);
  if (!outcome) return report_on_store(outcome.error());
  const Report report = report_of(*outcome, left, flags);
  const auto printed = print_report(report, report_form(flags.json), "repair", flags.store);
  if (!printed) return report_on_store(printed);
  return static_cast<int>(is_whole ? ExitCode::kOk : ExitCode::kStore);
}

void add_verify(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App& verb = *app.add_subcommand("verify", "check everything in a store");
  add_store(verb, flags->store);
  CLI::Option* const deep = verb.add_flag(
      "--deep", flags->is_deep, "train again from an earlier checkpoint, and compare digests");
  verb.add_option("--train", flags->deep.train, "the run's training file, for --deep")->needs(deep);
  CLI::Option* const from =
      verb.add_option("--from", flags->deep.from,
                      "store of the earlier checkpoint, or 'start' (otherwise the latest kept one)")
          ->needs(deep);
  verb.add_option("--rounds", flags->deep.rounds, "only N rounds from there")
      ->needs(deep)
      ->check(CLI::Range(1, 1'000'000'000));
  verb.add_option("--sample", flags->deep.sample,
                  "a round (or --rounds) from any of them, by chance from this seed")
      ->needs(deep)
      ->excludes(from);
  verb.add_option("--threads", flags->deep.threads, "for --deep (otherwise all)")
      ->needs(deep)
      ->check(CLI::Range(1, 1024));
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(
      std::string(
          "Reads the store whole, also while the master trains: checksums of files and "
          "records, keys, rows\nagainst the digests of their shards, table entries against "
          "codes computed again from the weights,\nstaged commits, history, accounts and "
          "the run's identity. Lists everything wrong, not the first.\n\n"
          "--deep trains the rounds since an earlier checkpoint again, in this process, and "
          "compares the digest\nof every shard; with --rounds, as many of them as are asked for, "
          "and compares with the digest that\nthe history has of that checkpoint; with --sample, "
          "a round that follows one of the kept checkpoints\nor the start, whichever the seed "
          "chooses. Copies of both checkpoints lie in STORE.deep meanwhile.\n\n"
          "Examples:\n"
          "  gleaner verify run1\n"
          "  gleaner verify run1 --deep --train train.txt --from run1.kept/monday\n"
          "  gleaner verify run1 --deep --train train.txt --sample 7\n"
          "  gleaner verify run1 --json | jq '.findings[] | .where'\n\n") +
      kStoreExitCodes + "\nA damaged store is 4.");
  verb.callback([flags, &exit_status] { exit_status = verify(*flags); });
}

void add_repair(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<RepairFlags>();
  CLI::App& verb = *app.add_subcommand("repair", "make a damaged store whole, with a backup");
  verb.add_option("store", flags->store, "the damaged store, which is only read")->required();
  verb.add_option("--from", flags->backups, "folder that gleaner-master was given as --backup")
      ->required();
  verb.add_option("--backup", flags->number,
                  "number of the only one to use (as DIR@N); else each, from the last");
  verb.add_option("--to", flags->target,
                  "folder for the repaired store (otherwise STORE.repaired)");
  verb.add_flag("--json", flags->json, "one JSON object");
  verb.footer(
      std::string("Writes a new store of all that is sound, and says what it did about the rest: "
                  "table entries are\ncomputed again; rows are taken from the backup where the "
                  "shard's digest proves that they are the\nones that were there. The result has "
                  "the checkpoint's digest, or is not written. The open round\nis trained "
                  "again.\n\n"
                  "Examples:\n"
                  "  gleaner repair run1 --from backups1\n"
                  "  gleaner repair run1 --from backups1@3 --to run1.new\n\n") +
      kStoreExitCodes + "\nDamage that cannot be repaired is 4.");
  verb.callback([flags, &exit_status] { exit_status = repair(*flags); });
}

}  // namespace

void add_verify_commands(CLI::App& app, int& exit_status) {
  add_verify(app, exit_status);
  add_repair(app, exit_status);
}

}  // namespace gleaner
