#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "master/shell/keeper.hpp"
#include "master/shell/resume_point.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/keep/kept_checkpoints.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"

namespace gleaner {
namespace {

struct CheckpointFlags {
  std::string store;
  std::string name;
  bool json = false;
};

Result<RoundRecord> last_record(RunStore& run) {
  const auto history = run.history();
  if (!history) return history.error();
  RoundRecord last;
  for (const RoundRecord& record : *history) {
    if (record.checkpoint == run.checkpoint()) last = record;
  }
  return last;
}

Result<void> print_digest(const CheckpointFlags& flags) {
  const auto run = open_run_to_read(flags.store);
  if (!run) return run.error();
  const Result<std::string> digest = (*run)->checkpoint_digest();
  if (!digest) return digest.error();
  return print_done(flags.json, "checkpoint digest", flags.store,
                    {{"checkpoint", (*run)->checkpoint()}, {"digest", *digest}}, *digest + "\n");
}

Result<void> list(const CheckpointFlags& flags) {
  if (auto found = find_store_folder(flags.store); !found) return found;
  Report report;
  ReportTable& table = report.table("checkpoints", {{"name", "name", true},
                                                    {"checkpoint", "checkpoint"},
                                                    {"batches", "batches"},
                                                    {"wall_seconds", "written (UTC)"},
                                                    {"p_at_1", "P@1"},
                                                    {"bytes", "files"},
                                                    {"store", "readable as", true}});
  const auto add = [&](Cell name, const std::string& path) -> Result<void> {
    const auto run = open_run_to_read(path);
    if (!run) return run.error();
    const auto last = last_record(**run);
    if (!last) return last.error();
    table.rows.push_back({std::move(name), cell_count((*run)->checkpoint()),
                          cell_count(last->batches), cell_time(last->wall_seconds),
                          cell_measured_share(last->precision.at_1()),
                          cell_bytes(folder_bytes(path)), cell_text(path)});
    return {};
  };
  if (auto added = add({nullptr, "(the last)"}, flags.store); !added) return added;
  for (const std::string& name : kept_names(flags.store)) {
    if (auto added = add(cell_text(name), kept_path(flags.store, name)); !added) return added;
  }
  return print_report(report, report_form(flags.json), "checkpoint list", flags.store);
}

// The run's last checkpoint, or the kept one of the name.
Result<void> show(const CheckpointFlags& flags) {
  const std::string path = flags.name.empty() ? flags.store : kept_path(flags.store, flags.name);
  const auto run = open_run_to_read(path);
  if (!run) return run.error();
  const auto last = last_record(**run);
  if (!last) return last.error();
  const auto digest = (*run)->checkpoint_digest();
  if (!digest) return digest.error();
  Report report;
  report.fact("name", "name", flags.name.empty() ? cell_none() : cell_text(flags.name));
  report.fact("store", "readable as", cell_text(path));
  report.fact("checkpoint", "checkpoint", cell_count((*run)->checkpoint()));
  report.fact("batches", "batches", cell_count(last->batches));
  report.fact("epoch", "epochs", cell_count(last->epoch));
  report.fact("wall_seconds", "written (UTC)", cell_time(last->wall_seconds));
  report.fact("loss", "loss", cell_measured(last->loss, 4));
  report.fact("p_at_1", "P@1", cell_measured_share(last->precision.at_1()));
  report.fact("p_at_5", "P@5", cell_measured_share(last->precision.p[2]));
  report.fact("bytes", "files", cell_bytes(folder_bytes(path)));
  report.fact("digest", "digest", cell_text(*digest));
  return print_report(report, report_form(flags.json), "checkpoint show", flags.store);
}

constexpr const char* kBest = "best";

// The master keeps the best checkpoint under this name, and the last one is another one mostly.
Result<void> keep_best(const CheckpointFlags& flags) {
  const auto run = open_run_to_read(flags.store);
  if (!run) return run.error();
  const auto history = (*run)->history();
  if (!history) return history.error();
  const LearningSoFar learning = learning_so_far(*history, (*run)->checkpoint());
  if (learning.best_p_at_1 < 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("no checkpoint of {} was evaluated, so none is known as the best: give "
                    "gleaner-master --test FILE, or keep the last one under another name",
                    flags.store)};
  }
  const RoundIndex best = learning.best_checkpoint;
  if (!kept_best(flags.store, **run, best).empty()) return {};
  if ((*run)->checkpoint() == best) {
    return link_store(flags.store, kept_path(flags.store, kBest));
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("the best checkpoint of {} is {} (P@1 {:.4f}), which was not kept and is "
                  "gone: keep the last one under another name",
                  flags.store, best, learning.best_p_at_1)};
}

Result<void> keep(const CheckpointFlags& flags) {
  if (flags.name == kBest) {
    if (auto kept = keep_best(flags); !kept) return kept;
    return show(flags);
  }
  if (auto kept = keep_checkpoint(flags.store, flags.name); !kept) return kept;
  return show(flags);
}

Result<void> drop(const CheckpointFlags& flags) {
  if (auto dropped = drop_kept(flags.store, flags.name); !dropped) return dropped;
  Report report;
  report.fact("dropped", "dropped", cell_text(flags.name));
  return print_report(report, report_form(flags.json), "checkpoint drop", flags.store);
}

struct Verb {
  const char* name;
  const char* what;
  const char* footer;
  enum class Name { kNone, kOptional, kRequired } takes_name;
  Result<void> (*run)(const CheckpointFlags& flags);
};

constexpr Verb kVerbs[] = {
    {"digest", "print the SHA-256 of the last whole checkpoint, 64 hexadecimal digits",
     "The digest covers configuration, seed and data fingerprint, progress, every weight, state "
     "and\ntable entry. The same data, configuration and seed give the same digest at the same "
     "checkpoint,\nwhichever machines took part. It may be asked for while the master runs.\n\n"
     "Examples:\n"
     "  gleaner checkpoint digest run1\n"
     "  test \"$(gleaner checkpoint digest run1)\" = \"$(gleaner checkpoint digest run2)\"\n\n",
     Verb::Name::kNone, print_digest},
    {"list", "the run's last checkpoint and those that are kept",
     "Examples:\n"
     "  gleaner checkpoint list run1\n"
     "  gleaner checkpoint list run1 --json | jq '.checkpoints[].name'\n\n",
     Verb::Name::kNone, list},
    {"show", "one checkpoint: the last one, or a kept one",
     "Reads it whole, for its digest.\n\n"
     "Examples:\n"
     "  gleaner checkpoint show run1\n"
     "  gleaner checkpoint show run1 before-tuning --json | jq -r .digest\n\n",
     Verb::Name::kOptional, show},
    {"keep", "keep the last checkpoint under a name, or the best as `best`",
     "It works while the master trains, too. The kept one is a store of its own, STORE.kept/NAME, "
     "which every verb reads, and gleaner-master goes "
     "on from.\nTable files are hard links: it takes room only as the run's own files change.\n\n"
     "Examples:\n"
     "  gleaner checkpoint keep run1 before-tuning\n"
     "  gleaner checkpoint keep run1 best\n"
     "  gleaner checkpoint keep run1 a && gleaner diff run1.kept/a run1\n\n",
     Verb::Name::kRequired, keep},
    {"drop", "delete a kept checkpoint; the run's own is never touched",
     "Examples:\n"
     "  gleaner checkpoint drop run1 before-tuning\n"
     "  gleaner checkpoint drop run1 a --json\n\n",
     Verb::Name::kRequired, drop},
};

void add_verb(CLI::App& parent, const Verb& verb, int& exit_status) {
  CLI::App& app = *parent.add_subcommand(verb.name, verb.what);
  auto flags = std::make_shared<CheckpointFlags>();
  add_store(app, flags->store);
  if (verb.takes_name != Verb::Name::kNone) {
    app.add_option("name", flags->name, "of the kept checkpoint")
        ->required(verb.takes_name == Verb::Name::kRequired);
  }
  app.add_flag("--json", flags->json, "one JSON object");
  app.footer(std::string(verb.footer) + kStoreExitCodes);
  app.callback([flags, &verb, &exit_status] {
    exit_status = report_on_store(name_folder(verb.run(*flags), flags->store));
  });
}

}  // namespace

void add_checkpoint_commands(CLI::App& app, int& exit_status) {
  CLI::App& checkpoint =
      *app.add_subcommand("checkpoint", "the last whole checkpoint of a store, and kept ones");
  checkpoint.footer(
      "Examples:\n"
      "  gleaner checkpoint digest run1\n"
      "  gleaner checkpoint keep run1 before-tuning");
  checkpoint.require_subcommand(1);
  for (const Verb& verb : kVerbs) add_verb(checkpoint, verb, exit_status);
}

}  // namespace gleaner
