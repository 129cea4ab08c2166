#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/time.hpp"
#include "storage/keep/backup.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

constexpr const char* kExitCodes =
    "Exit status: 0 done, 1 failure of the system, 2 usage, 4 no usable backup or store.";

struct Flags {
  std::string folder;
  std::string store;
  std::uint32_t number = 0;  // 0: the last one, or all
  bool json = false;
  bool force = false;
};

ReportTable table_of(const std::vector<Backup>& backups) {
  ReportTable table{"backups",
                    {{"backup", "backup"},
                     {"checkpoint", "checkpoint"},
                     {"bytes", "size"},
                     {"wall_seconds", "made", true},
                     {"run", "run", true}},
                    {}};
  for (const Backup& b : backups) {
    table.rows.push_back({{b.number, std::to_string(b.number)},
                          {b.checkpoint, std::to_string(b.checkpoint)},
                          cell_bytes(b.bytes),
                          {b.wall_seconds, local_time_words(b.wall_seconds)},
                          {b.run, b.run}});
  }
  return table;
}

Result<void> list_backups(const BackupFolder& backups, const Flags& flags) {
  ReportTable table = table_of(backups.list());
  if (flags.json) return print_out(json_lines(table_json(table)));
  Report report;
  report.table(table.key, table.columns).rows = std::move(table.rows);
  return print_report(report, ReportForm::kPeople, "backup list", flags.folder);
}

Result<void> verify_backups(const BackupFolder& backups, const Flags& flags) {
  std::vector<Backup> chosen = backups.list();
  if (flags.number != 0 || chosen.empty()) {
    const Result<Backup> one = backups.choose(flags.number);
    if (!one) return one.error();
    chosen = {*one};
  }
  std::uint64_t done = 0;
  std::uint64_t total = 0;
  for (const Backup& backup : chosen) total += backup.bytes;
  ProgressLine progress("Verifying");
  for (const Backup& backup : chosen) {
    progress.show(done, total, "bytes");
    if (auto verified = backups.verify(backup.number); !verified) {
      return Error{verified.error().code,
                   fmt::format("backup {}: {}", backup.number, verified.error().message)};
    }
    done += backup.bytes;
    if (flags.json) continue;
    if (auto printed =
            print_out(fmt::format("backup {} of checkpoint {} is intact: {}\n", backup.number,
                                  backup.checkpoint, bytes_shown(backup.bytes)));
        !printed) {
      return printed;
    }
  }
  if (!flags.json) return {};
  return print_out(
      json_document("backup verify", flags.folder, {{"intact", table_json(table_of(chosen))}}));
}

Result<void> restore_backup(const BackupFolder& backups, const Flags& flags) {
  const Result<Backup> backup = backups.choose(flags.number);
  if (!backup) return backup.error();
  {
    ProgressLine progress("Restoring");
    auto restored =
        backups.restore(backup->number, flags.store, flags.force,
                        [&](std::uint64_t bytes) { progress.show(bytes, backup->bytes, "bytes"); });
    if (!restored) return restored;
  }
  return print_done(
      flags.json, "restore", flags.folder,
      {{"store", printable(flags.store)},
       {"backup", backup->number},
       {"checkpoint", backup->checkpoint}},
      fmt::format("{}: checkpoint {} restored from backup {}.\ngleaner-master --store {} with the "
                  "run's other flags trains on from there.\n",
                  flags.store, backup->checkpoint, backup->number, flags.store));
}

int run(const std::shared_ptr<Flags>& flags,
        const std::function<Result<void>(const BackupFolder&, const Flags&)>& action) {
  if (const auto named = as_backup(flags->folder); named && named->number != 0) {
    flags->folder = named->folder;
    flags->number = named->number;
  }
  const auto backups = BackupFolder::open(flags->folder, BackupAccess::kRead);
  return report_on_store(backups ? action(**backups, *flags) : Result<void>(backups.error()));
}

void add_list(CLI::App& parent, int& exit_status) {
  auto flags = std::make_shared<Flags>();
  CLI::App& list = *parent.add_subcommand("list", "print the backups that can be restored");
  list.add_option("folder", flags->folder, "folder that gleaner-master was given as --backup")
      ->required();
  list.add_flag("--json", flags->json, "one JSON object a line instead of a table");
  list.footer(std::string("The size is that of all files of a backup, also of those that it shares "
                          "with others.\n\n"
                          "Examples:\n"
                          "  gleaner backup list backups1\n"
                          "  gleaner backup list backups1 --json | jq .checkpoint\n\n") +
              kExitCodes);
  list.callback([flags, &exit_status] { exit_status = run(flags, list_backups); });
}

void add_verify_backup(CLI::App& parent, int& exit_status) {
  auto flags = std::make_shared<Flags>();
  CLI::App& verify = *parent.add_subcommand("verify", "read backups whole and compare checksums");
  verify.add_option("folder", flags->folder, "folder that gleaner-master was given as --backup")
      ->required();
  verify.add_option("--backup", flags->number, "number of the only one to verify; else all");
  verify.add_flag("--json", flags->json, "one JSON object, when all are intact");
  verify.footer(std::string("Stops at the first damaged backup.\n\n"
                            "Examples:\n"
                            "  gleaner backup verify backups1\n"
                            "  gleaner backup verify backups1 --backup 3\n\n") +
                kExitCodes);
  verify.callback([flags, &exit_status] { exit_status = run(flags, verify_backups); });
}

void add_restore(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<Flags>();
  CLI::App& restore = *app.add_subcommand("restore", "make a store of a backup");
  restore.add_option("folder", flags->folder, "folder that gleaner-master was given as --backup")
      ->required();
  restore.add_option("store", flags->store, "folder for the store: new, or empty")->required();
  restore.add_option("--backup", flags->number, "number of the backup; else the last one");
  restore.add_flag("--force", flags->force, "replace what the store's folder holds");
  restore.add_flag("--json", flags->json, "one JSON object");
  restore.footer(std::string("Every file's checksum is compared on the way. The store is written "
                             "beside its place first and is\nthere whole or not at all; its digest "
                             "is that of the checkpoint that was backed up, and training\ngoes on "
                             "from it to the same model.\n\n"
                             "Examples:\n"
                             "  gleaner restore backups1 run1\n"
                             "  gleaner restore backups1 run1 --backup 3 --force\n\n") +
                 kExitCodes);
  restore.callback([flags, &exit_status] { exit_status = run(flags, restore_backup); });
}

}  // namespace

void add_backup_commands(CLI::App& app, int& exit_status) {
  CLI::App& backup = *app.add_subcommand("backup", "look at the backups that a master has made");
  backup.footer(
      "Every verb that reads a store reads a backup where it lies, too: FOLDER is the last one, "
      "FOLDER@3 the\nthird.\n\n"
      "Examples:\n"
      "  gleaner backup list backups1\n"
      "  gleaner backup verify backups1");
  backup.require_subcommand(1);
  add_list(backup, exit_status);
  add_verify_backup(backup, exit_status);
  add_restore(app, exit_status);
}

}  // namespace gleaner
