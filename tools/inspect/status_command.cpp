#include "tools/inspect/status_command.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>

#include "common/exit_code.hpp"
#include "common/model/run_plan.hpp"
#include "common/settings/settings.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/identity.hpp"
#include "storage/master_note.hpp"
#include "tools/cli/report.hpp"
#include "tools/cli/store_access.hpp"
#include "tools/inspect/master_query.hpp"
#include "tools/inspect/status_report.hpp"

namespace gleaner {
namespace {

constexpr const char* kDefaultAddress = "127.0.0.1:7070";

struct StatusFlags {
  std::string where = kDefaultAddress;
  std::string about;  // of `why`
  std::string token;
  bool json = false;

  [[nodiscard]] ReportForm form() const { return json ? ReportForm::kJson : ReportForm::kPeople; }
};

// What could be learnt: from the master, or why it could not be asked and what its store says.
struct Learnt {
  std::string address;
  std::optional<RunStatus> status;
  std::string no_master;            // why there is no status
  std::unique_ptr<RunStore> store;  // then
};

std::string token_of(const StatusFlags& flags) {
  if (!flags.token.empty()) return flags.token;
  const char* token = std::getenv("GLEANER_TOKEN");  // NOLINT(concurrency-mt-unsafe): one thread
  return token == nullptr ? "" : token;
}

// The note is believed as far as the master that answers agrees with it and with the store.
Result<void> ask_noted_master(const std::string& folder, const StatusFlags& flags, Learnt& learnt) {
  const std::optional<RunningMaster> note = read_master_note(folder);
  const std::optional<int> writer = writer_of(folder);
  if (!note) {
    learnt.no_master =
        writer ? fmt::format(
                     "process {} trains it and takes no connections: start gleaner-master "
                     "with --listen to be able to ask it",
                     *writer)
               : "no master trains it now";
    return {};
  }
  learnt.address = note->address;
  const auto address = parse_host_port(note->address);
  if (!address) {
    learnt.no_master = "the note of its master cannot be read";
    return {};
  }
  auto status = ask_master(*address, token_of(flags));
  if (!status) {
    if (status.error().code == ErrorCode::kToken) return status.error();
    learnt.no_master = writer ? status.error().message
                              : fmt::format(
                                    "no master trains it now; the last one, at {}, did not "
                                    "end by itself",
                                    note->address);
    return {};
  }
  if (status->life != note->life || status->run != run_name(learnt.store->identity())) {
    learnt.no_master =
        fmt::format("no master trains it now; at {} another run is trained", note->address);
    return {};
  }
  learnt.status = std::move(*status);
  return {};
}

Result<Learnt> learn(const StatusFlags& flags) {
  Learnt learnt;
  std::error_code error;
  if (std::filesystem::is_directory(flags.where, error)) {
    auto store = open_run_to_read(flags.where);
    if (!store) return store.error();
    learnt.store = std::move(*store);
    if (auto asked = ask_noted_master(flags.where, flags, learnt); !asked) return asked.error();
    return learnt;
  }
  const auto address = parse_host_port(flags.where);
  if (!address) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} is neither the folder of a store nor a master's HOST:PORT", flags.where)};
  }
  learnt.address = flags.where;
  auto status = ask_master(*address, token_of(flags));
  if (!status) return status.error();
  learnt.status = std::move(*status);
  return learnt;
}

Result<Report> stored_status(RunStore& run, const StatusFlags& flags, const std::string& reason) {
  const ModelConfig& model = run.identity().model;
  const RunPlan plan(model);
  const auto history = run.history();
  if (!history) return history.error();
  const HistoryRecord last = history->empty() ? HistoryRecord() : history->back();
  Report report;
  report.fact("is_running", "master", {false, "none"});
  report.fact("reason", "because", cell_text(reason));
  report.fact("run", "run", cell_text(run_name(run.identity())));
  report.section("progress", "Progress, from the store's last checkpoint");
  Cell round = cell_count(run.checkpoint());
  round.text = fmt::format("{} of {}", grouped(run.checkpoint()), grouped(plan.round_count()));
  report.fact("round", "rounds", std::move(round));
  Cell batch = cell_count(plan.round_begin(run.checkpoint()));
  batch.text = fmt::format("{} of {}", batch.text, grouped(plan.batch_count()));
  report.fact("batch", "batches", std::move(batch));
  report.fact("wall_seconds", "written (UTC)", cell_time(last.wall_seconds));
  report.fact("loss", "loss", cell_measured(last.loss, 4));
  report.fact("p_at_1", "P@1", cell_measured_share(last.p_at_1));
  report.section("disk", "Disk");
  report.fact("store_bytes", "store", cell_bytes(folder_bytes(flags.where)));
  const auto free = free_bytes(flags.where);
  report.fact("free_bytes", "free", free ? cell_bytes(*free) : cell_none());
  return report;
}

Result<void> show_status(const StatusFlags& flags) {
  const Result<Learnt> learnt = learn(flags);
  if (!learnt) return learnt.error();
  const TextStyle style = terminal_facts(stdout).style;
  const Result<Report> report = learnt->status
                                    ? status_report(*learnt->status, learnt->address, style)
                                    : stored_status(*learnt->store, flags, learnt->no_master);
  if (!report) return report.error();
  return print_report(*report, flags.form(), "status", flags.where);
}

Result<void> show_why(const StatusFlags& flags) {
  const Result<Learnt> learnt = learn(flags);
  if (!learnt) return learnt.error();
  std::vector<std::string> sentences = {
      fmt::format("Nobody can be asked about {}: {}.", flags.where, learnt->no_master)};
  if (learnt->status) {
    auto answer = why(*learnt->status, flags.about);
    if (!answer) return answer.error();
    sentences = std::move(*answer);
  } else {
    sentences.push_back(
        fmt::format("Its last checkpoint is {} of {}; gleaner-master goes on from there.",
                    grouped(learnt->store->checkpoint()),
                    grouped(RunPlan(learnt->store->identity().model).round_count())));
  }
  if (flags.json) {
    Json body = Json::object();
    body["about"] = printable(flags.about);
    body["is_running"] = learnt->status.has_value();
    body["sentences"] = sentences;
    return print_out(json_document("why", flags.where, body));
  }
  std::string text;
  for (const std::string& sentence : sentences) text += wrap_text(sentence, 0);
  return print_out(text);
}

// Who cannot be asked is a matter of the network.
int exit_status_for(const Result<void>& done) {
  const int status = report_on_store(done);
  if (done) return status;
  switch (done.error().code) {
    case ErrorCode::kIo:
    case ErrorCode::kProtocol:
    case ErrorCode::kToken:
      return static_cast<int>(ExitCode::kNetwork);
    default:
      return status;
  }
}

constexpr const char* kExitStatus =
    "Exit status: 0 done: answered, by the master or from the store; 1 failure of the system, 2 "
    "usage, 4 no usable\nstore, 5 no master answers at HOST:PORT, or it refuses.";

void add_common(CLI::App& verb, const std::shared_ptr<StatusFlags>& flags) {
  verb.add_option(
      "where", flags->where,
      fmt::format("a master's HOST:PORT, or its store's folder (otherwise {})", kDefaultAddress));
  verb.add_option("--token", flags->token,
                  "what the master asks of those who join; otherwise GLEANER_TOKEN");
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
                            "  gleaner status 10.0.0.5:7070\n"
                            "  gleaner status run1 --json | jq .wait\n\n") +
                kExitStatus);
  status.callback([flags, &exit_status] { exit_status = exit_status_for(show_status(*flags)); });

  auto asked = std::make_shared<StatusFlags>();
  CLI::App& why = *app.add_subcommand("why", "why a run stands as it does, in sentences");
  why.add_option("about", asked->about, "'run', a shard's number, or a volunteer's name")
      ->required();
  add_common(why, asked);
  why.footer(std::string("What the run waits for, since when, and who can end it; why a shard is "
                         "where it is; why a volunteer has\nno shards, or went.\n\n"
                         "Examples:\n"
                         "  gleaner why run run1\n"
                         "  gleaner why 12 10.0.0.5:7070\n\n") +
             kExitStatus);
  why.callback([asked, &exit_status] { exit_status = exit_status_for(show_why(*asked)); });
}

}  // namespace gleaner
