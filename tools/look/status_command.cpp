// `gleaner status` and `gleaner why`: ask the master of a run, or its store where no master
// answers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "common/access/addresses.hpp"
#include "common/model/run_plan.hpp"
#include "common/result.hpp"
#include "common/settings/settings.hpp"
#include "common/text.hpp"
#include "common/time.hpp"
#include "master/see/status_words.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/run_store.hpp"
#include "tools/admit/master_query.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

struct StatusFlags {
  std::string where;
  std::string about;  // of `why`
  bool insecure = false;
  bool json = false;
};

constexpr const char* kAboutRun = "run";

// The answer: from the master, or why it could not be asked and what its store says.
struct Learnt {
  std::string address;  // HOST:PORT
  std::optional<RunStatus> status;
  std::string subject;              // the folder or HOST:PORT; never a secret
  std::string no_master;            // why there is no status
  std::unique_ptr<RunStore> store;  // then
};

// The folder or address that is asked about.
Result<std::string> where_of(const StatusFlags& flags) {
  if (!flags.where.empty()) return flags.where;
  const char* master = std::getenv("GLEANER_MASTER");  // NOLINT(concurrency-mt-unsafe): one thread
  if (master != nullptr) return std::string(master);
  return Error{ErrorCode::kInvalidArgument,
               "say where: the folder of a store, or the line that its master prints"};
}

std::string another_run(const std::string& address) {
  return fmt::format("no master trains it now; at {} another run is trained", address);
}

// The note is believed as far as the master that answers agrees with it and with the store.
Result<void> ask_noted_master(const std::string& folder, Learnt& learnt) {
  const std::optional<RunningMaster> note = read_master_note(folder);
  const std::optional<int> writer = writer_of(folder);
  if (!note) {
    learnt.no_master = writer ? fmt::format("process {} has it and takes no questions yet", *writer)
                              : "no master trains it now";
    return {};
  }
  learnt.address = note->address;
  const auto address = owner_address(folder, *note);
  if (!address) return address.error();
  auto status = ask_status(*address);
  if (!status) {
    const ErrorCode code = status.error().code;
    if (code == ErrorCode::kInvite) return status.error();
    // The port that a killed master had may be anybody's.
    if (code == ErrorCode::kIdentity) {
      learnt.no_master = another_run(note->address);
      return {};
    }
    learnt.no_master = writer ? status.error().message
                              : fmt::format(
                                    "no master trains it now; the last one, at {}, did not "
                                    "end by itself",
                                    note->address);
    return {};
  }
  if (status->life != note->life || status->run != run_name(learnt.store->identity())) {
    learnt.no_master = another_run(note->address);
    return {};
  }
  learnt.status = std::move(*status);
  return {};
}

Result<Learnt> learn(const StatusFlags& flags) {
  const auto where = where_of(flags);
  if (!where) return where.error();
  Learnt learnt;
  learnt.subject = *where;
  std::error_code error;
  if (std::filesystem::is_directory(*where, error)) {
    auto store = open_run_to_read(*where);
    if (!store) return store.error();
    learnt.store = std::move(*store);
    if (auto asked = ask_noted_master(*where, learnt); !asked) return asked.error();
    return learnt;
  }
  const auto address = parse_master_address(*where);
  if (!address && !where->starts_with(kAddressScheme)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is neither the folder of a store nor the line that a master prints, "
                    "gleaner://HOST:PORT/KEY.INVITE",
                    *where)};
  }
  if (!address) return address.error();
  if (auto fits = check_secrecy(*address, flags.insecure); !fits) return fits.error();
  learnt.address = to_text(address->where);
  learnt.subject = learnt.address;
  auto status = ask_status(*address);
  if (!status) return status.error();
  learnt.status = std::move(*status);
  return learnt;
}

Result<Report> stored_status(RunStore& run, const std::string& folder, const std::string& reason) {
  const ModelConfig& model = run.identity().model;
  const RunPlan plan(model);
  const auto record = run.history_at(run.checkpoint());
  if (!record) return record.error();
  const RoundRecord last = record->value_or(RoundRecord());
  const bool is_finished = run.checkpoint() >= plan.round_count();
  Report report;
  report.fact("is_running", "master", {false, "none"});
  report.fact("is_finished", "finished", {is_finished, is_finished ? "yes" : "no"});
  if (!is_finished) report.fact("reason", "because", cell_text(reason));
  report.fact("run", "run", cell_text(run_name(run.identity())));
  report.section("progress", "Progress, from the store's last checkpoint");
  report.fact("round", "rounds", {run.checkpoint(), part_of(run.checkpoint(), plan.round_count())});
  const BatchIndex batch = plan.round_begin(run.checkpoint());
  report.fact("batch", "batches", {batch, part_of(batch, plan.batch_count())});
  report.fact("wall_seconds", "written (UTC)", cell_time(last.wall_seconds));
  report.fact("loss", "loss", cell_measured(last.loss, 4));
  report.fact("p_at_1", "P@1", cell_measured_share(last.precision.at_1()));
  report.section("disk", "Disk");
  report.fact("store_bytes", "store", cell_bytes(folder_bytes(folder)));
  const auto free = free_bytes(folder);
  report.fact("free_bytes", "free", free ? cell_bytes(*free) : cell_none());
  return report;
}

Result<void> show_status(const StatusFlags& flags) {
  const Result<Learnt> learnt = learn(flags);
  if (!learnt) return learnt.error();
  const TextStyle style = terminal_facts(stdout).style;
  const Result<Report> report =
      learnt->status ? status_report(*learnt->status, learnt->address, style)
                     : stored_status(*learnt->store, learnt->subject, learnt->no_master);
  if (!report) return report.error();
  return print_report(*report, report_form(flags.json), "status", learnt->subject);
}

std::vector<std::string> sentences_of_store(const Learnt& learnt) {
  const RoundIndex checkpoint = learnt.store->checkpoint();
  const RoundIndex rounds = RunPlan(learnt.store->identity().model).round_count();
  if (checkpoint >= rounds) {
    return {fmt::format("The run is finished: all {} checkpoints are kept, and no master is needed "
                        "any more.",
                        grouped(rounds)),
            fmt::format("gleaner evaluate {0} says how good the model is, and gleaner predict {0} "
                        "asks it.",
                        learnt.subject)};
  }
  return {fmt::format("Nobody can be asked about {}: {}.", learnt.subject, learnt.no_master),
          fmt::format("Its last checkpoint is {} of {}; gleaner-master goes on from there.",
                      grouped(checkpoint), grouped(rounds))};
}

// "why run1", "why run1 12" and "why 12 run1" are all understood.
StatusFlags in_order(StatusFlags flags) {
  if (is_place(flags.about) && !is_place(flags.where)) std::swap(flags.about, flags.where);
  if (flags.about.empty()) flags.about = kAboutRun;
  return flags;
}

Result<void> show_why(const StatusFlags& given) {
  const StatusFlags flags = in_order(given);
  const Result<Learnt> learnt = learn(flags);
  if (!learnt) return learnt.error();
  std::vector<std::string> sentences;
  if (learnt->status) {
    auto answer = why(*learnt->status, flags.about);
    if (!answer) return answer.error();
    sentences = std::move(*answer);
  } else {
    sentences = sentences_of_store(*learnt);
  }
  if (flags.json) {
    Json body = Json::object();
    body["about"] = printable(flags.about);
    body["is_running"] = learnt->status.has_value();
    body["sentences"] = sentences;
    return print_out(json_document("why", learnt->subject, body));
  }
  std::string text;
  for (const std::string& sentence : sentences) text += wrap_text(sentence, 0);
  return print_out(text);
}

constexpr const char* kExitStatus =
    "Exit status: 0 done: answered, by the master or from the store; 1 failure of the system, 2 "
    "usage, 4 no usable\nstore, 5 no master answers there, or it refuses.";

void add_common(CLI::App& verb, const std::shared_ptr<StatusFlags>& flags) {
  verb.add_option(
      "where", flags->where,
      "a store's folder, or the line that its master prints (otherwise GLEANER_MASTER)");
  verb.add_flag("--insecure", flags->insecure,
                "the address is HOST:PORT of a master in plain text");
  verb.add_flag("--json", flags->json, "one JSON object");
}

}  // namespace

void add_status_commands(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<StatusFlags>();
  CLI::App& status = *app.add_subcommand("status", "what a run is doing now");
  add_common(status, flags);
  status.footer(std::string("Asks the run's master: how far it is, how fast, what it waits for and "
                            "since when, who is here, who\nholds which shard, the disk. Of a store "
                            "that no master trains, the last checkpoint is told.\n\n"
                            "Examples:\n"
                            "  gleaner status gleaner://10.0.0.5:7070/KEY.INVITE\n"
                            "  gleaner status run1 --json | jq .wait\n\n") +
                kExitStatus);
  status.callback(
      [flags, &exit_status] { exit_status = exit_status_of_asking(show_status(*flags)); });

  auto asked = std::make_shared<StatusFlags>();
  CLI::App& why = *app.add_subcommand("why", "why a run stands as it does, in sentences");
  why.add_option("about", asked->about,
                 "a shard's number, or a volunteer's name; the run itself unless given");
  add_common(why, asked);
  why.footer(std::string("What the run waits for, since when, and who can end it; why a shard is "
                         "where it is; why a volunteer has\nno shards, or went.\n\n"
                         "Examples:\n"
                         "  gleaner why run1\n"
                         "  gleaner why 12 run1\n\n") +
             kExitStatus);
  why.callback([asked, &exit_status] { exit_status = exit_status_of_asking(show_why(*asked)); });
}

}  // namespace gleaner
