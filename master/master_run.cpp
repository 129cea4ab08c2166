#include "master/master_run.hpp"

#include <fmt/format.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "common/machine_facts.hpp"
#include "common/model/run_plan.hpp"
#include "common/net/stop_signals.hpp"
#include "master/announcement.hpp"
#include "master/core_settings.hpp"
#include "master/door/gate.hpp"
#include "master/entrance.hpp"
#include "master/finished_run.hpp"
#include "master/goodbye.hpp"
#include "master/in_process_volunteers.hpp"
#include "master/see/progress_source.hpp"
#include "master/see/readers.hpp"
#include "master/shell/disk_gauge.hpp"
#include "master/shell/keeper.hpp"
#include "master/shell/resume_point.hpp"
#include "master/shell/threaded_runner.hpp"
#include "master/shell/way_back.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {
namespace {

constexpr Millis kProgressPeriod{200};
// Time for goodbyes to leave.
constexpr std::chrono::seconds kFarewell{3};

// How the process ends; nullopt: the run goes on from its checkpoint.
using Ending = Result<std::optional<ExitCode>>;

class MasterRun {
 public:
  MasterRun(MasterConfig& config, const RunData& data, const StoreInFolder& store, Console& console,
            RunWeb* web);

  // `goes_on`: an earlier core of this process has trained, and everybody knows what the run is.
  Ending run(bool goes_on);

 private:
  // -- the steps of a run
  // Leaves the store at the checkpoint from which the run goes on: without unaudited work of banned
  // volunteers, and with settled commits of an earlier start, which it returns.
  Result<std::vector<SettledRound>> settle();
  [[nodiscard]] bool is_complete(const ResumePoint& resume) const;
  void make_core(const ResumePoint& resume, bool goes_on);
  // Returns when the core is done.
  void train();
  void close();

  void report(const Notice& notice);

  void watch_signals();
  void show_progress();
  void publish_web();
  Result<void> begin_web();
  void warn_of_copy();
  void complete(RunStatus& status, const Standing& standing);
  void end_backups();

  Ending conclude(const Done& done);
  // Leaves the store as the next core is to find it.
  Ending prepare_again(const Done& done);
  Ending cut_rates(const Divergence& divergence, const Error& error);
  Ending conclude_finished(bool already);
  Ending fail(const Error& error, ExitCode exit);

  MasterConfig& config_;
  const RunData& data_;
  RunStore& store_;
  const HeldFolder& folder_;
  Console& console_;
  RunWeb* const web_;        // may be null
  const RoundIndex rounds_;  // of the run
  const std::uint32_t threads_;
  ProgressSource progress_;
  ThreadPool pool_;
  Worker worker_;
  asio::io_context io_{1};
  TaskGroup tasks_;
  StopSignals signals_;
  Entrance entrance_;
  Keeper keeper_;
  std::optional<MasterCore> core_;
  std::optional<Persister> persister_;
  std::optional<ThreadedRunner> runner_;
  std::optional<InProcessVolunteers> own_;
  std::optional<Done> done_;
  Farewell farewell_;
  std::optional<ThanksBook> thanks_;
  bool is_asked_to_end_ = false;
  std::optional<MasterNote> note_;
  Instant started_ = monotonic_now();
  DiskGauge disk_;
};

}  // namespace

MasterRun::MasterRun(MasterConfig& config, const RunData& data, const StoreInFolder& store,
                     Console& console, RunWeb* web)
    : config_(config),
      data_(data),
      store_(store.run),
      folder_(store.folder),
      console_(console),
      web_(web),
      rounds_(RunPlan(data.model).round_count()),
      threads_(effective_threads(config, machine_facts().cores)),
      pool_(threads_),
      worker_(data.model, *data.train, data.test.get(), data.label_counts, pool_,
              config.run.input_layer == InputHolder::kVolunteers),
      tasks_(io_.get_executor(),
             [this](const std::string& task, const std::string& what) {
               console_.log(LogLevel::kError, task + ": " + what);
             }),
      signals_(io_),
      entrance_(io_, tasks_, config, folder_.reach(), console),
      keeper_(config, store_, folder_,
              [this](RunEvent event) {
                asio::post(io_, [this, event = std::move(event)] { console_.event(event); });
              }),
      disk_(io_, folder_, [this](const Error& error) {
        if (!done_) runner_->fail(error);
      }) {}

// Strangers decide how many connections fail to introduce themselves, so that their log is bounded.
void MasterRun::report(const Notice& notice) {
  if (const auto* line = std::get_if<LogLine>(&notice); line && line->kind == "turned_away") {
    return entrance_.warn_of_stranger(line->message);
  }
  std::visit(
      [this]<typename T>(const T& one) {
        if constexpr (std::is_same_v<T, RefereeWanted>) {
          asio::post(io_, [this] {
            if (!done_) own_->start_referee();
          });
        } else if constexpr (std::is_same_v<T, Conviction>) {
          const Volunteer& who = one.who;
          if (!entrance_.is_open()) return;
          entrance_.keep_out(who.identity, who.invite, who.name, one.what);
        } else {
          if constexpr (requires { farewell_.note(one); }) farewell_.note(one);
          console_.event(one);
        }
      },
      notice);
  if (web_ != nullptr) web_->notice(notice);
}

void MasterRun::watch_signals() {
  signals_.async_wait([this](asio::error_code error, int signal) {
    if (error) return;
    const bool is_again = std::exchange(is_asked_to_end_, true);
    if (!is_again || signal != kHangup) runner_->stop();
    if (!done_) watch_signals();
  });
}

void MasterRun::complete(RunStatus& status, const Standing& standing) {
  status.run = run_name(store_.identity());
  progress_.complete(status.progress, monotonic_now());
  status.store_bytes = disk_.store_bytes();
  status.free_bytes = disk_.free_bytes();
  if (standing.role != Role::kAdmin) keep_aggregates(status);
}

void MasterRun::show_progress() {
  RunProgress now = runner_->progress();
  progress_.complete(now, monotonic_now());
  console_.update(now);
  if (web_ != nullptr && web_->is_due(monotonic_now())) publish_web();
  disk_.measure(monotonic_now());
  if (entrance_.is_open()) entrance_.gate().tick(wall_seconds());
  own_->observe(now);
  runner_->clock.after(kProgressPeriod, [this] { show_progress(); });
}

void MasterRun::publish_web() {
  if (web_ == nullptr) return;
  if (entrance_.is_open()) web_->admit_by(entrance_.gate().page_access());
  web_->publish(runner_->status(), runner_->accounts(), entrance_.bans(), monotonic_now());
}

// To be called before the storage thread uses the store.
Result<void> MasterRun::begin_web() {
  if (web_ == nullptr) return {};
  auto history = store_.history();
  auto receipts = latest_receipts(store_);
  if (!history || !receipts) return history ? receipts.error() : history.error();
  RunFacts facts = run_facts(config_, data_);
  facts.join = join_command(config_, entrance_.where());
  web_->begin(std::move(facts), std::move(*history), std::move(*receipts));
  return {};
}

Ending MasterRun::fail(const Error& error, ExitCode exit) {
  if (needs_room(error.code)) return error;
  // If the store is not in its place, this is the cause of any failure.
  const auto in_place = folder_.check();
  const RunFailed failed =
      in_place ? RunFailed{error, exit} : RunFailed{in_place.error(), ExitCode::kStore};
  console_.event(failed);
  return std::optional(failed.exit);
}

Ending MasterRun::conclude_finished(bool already) {
  Result<RunFinished> finished = finished_run(store_, folder_);
  if (!finished) return fail(finished.error(), ExitCode::kStore);
  finished->store = config_.run.store;
  finished->test = config_.data.test;
  finished->test_points = data_.test ? data_.test->points() : 0;
  finished->already = already;
  finished->recipe = data_.recipe.recipe;
  // News only if this process made the last evaluation.
  if (!already && !worker_.judged().empty()) {
    compare_with_centroids(*finished, *data_.train, worker_.judged(), {io_, signals_}, console_);
  }
  drop_kept_to_go_back(config_.run.store);
  finished->best_store = kept_best(config_.run.store, store_, finished->best_checkpoint);
  if (auto in_place = folder_.check(); !in_place) return fail(in_place.error(), ExitCode::kStore);
  finished->seconds = seconds_in(monotonic_now() - started_);
  console_.event(*finished);
  return std::optional(ExitCode::kOk);
}

Ending MasterRun::cut_rates(const Divergence& divergence, const Error& error) {
  if (store_.rate_cuts().size() >= kRateHalvingsMax) {
    return fail({ErrorCode::kInvalidArgument,
                 fmt::format("{}, and the rates have been halved {} times: train with other "
                             "--output-rate and --input-rate, or raise --divergence-factor",
                             error.message, kRateHalvingsMax)},
                ExitCode::kUsage);
  }
  if (auto cut = store_.cut_rates(); !cut) return fail(cut.error(), ExitCode::kStore);
  console_.event(RatesCut{store_.checkpoint(), store_.rate_cuts().back(),
                          std::string(sign_name(divergence.sign)), sentence(divergence),
                          divergence.value, divergence.before,
                          static_cast<std::uint32_t>(store_.rate_cuts().size())});
  return Ending(std::nullopt);
}

Ending MasterRun::prepare_again(const Done& done) {
  if (const auto* divergence = std::get_if<Divergence>(&*done.reason)) {
    return cut_rates(*divergence, done.error);
  }
  console_.log(LogLevel::kWarning, done.error.message);
  if (const auto* work = std::get_if<FalseWork>(&*done.reason)) {
    auto undone = undo_work_of(config_.run.store, store_, work->by, console_);
    if (!undone) return fail(undone.error(), ExitCode::kStore);
  }
  return Ending(std::nullopt);
}

Ending MasterRun::conclude(const Done& done) {
  if (done.outcome == Outcome::kTrainAgain) return prepare_again(done);
  if (done.outcome == Outcome::kFailed) {
    return fail(done.error, exit_code_of(done.error.code));
  }
  if (done.outcome == Outcome::kFinished) return conclude_finished(false);
  if (auto whole = read_whole(store_, folder_); !whole)
    return fail(whole.error(), ExitCode::kStore);
  console_.event(RunStopped{store_.checkpoint(), rounds_, done.outcome == Outcome::kStopped,
                            config_.run.store});
  return std::optional(ExitCode::kOk);
}

void MasterRun::end_backups() {
  auto& backups = keeper_.backups();
  if (!backups) return;
  io_.restart();
  if (done_->outcome == Outcome::kFinished) {
    run_while_serving(
        io_, signals_, [&] { backups->finish(store_); },
        [&] {
          console_.log(LogLevel::kWarning,
                       "asked to stop: the last backup is given up; the store is whole, and its "
                       "folder can be copied once this process has ended");
          backups->stop();
        });
  }
  backups.reset();
  io_.restart();
  io_.poll();  // shows the outcome of the last task
}

bool MasterRun::is_complete(const ResumePoint& resume) const {
  const bool is_trained =
      resume.checkpoint >= rounds_ || resume.learning.is_past_best(patience_of(config_));
  return is_trained && (resume.is_evaluated || !data_.test);
}

void MasterRun::make_core(const ResumePoint& resume, bool goes_on) {
  CoreConfig core = core_config(config_, data_);
  core.holds_unaudited = has_kept_to_go_back(config_.run.store);
  if (goes_on) core.min_volunteers = 1;  // they have been here before
  core_.emplace(data_.model, std::move(core), resume);
  persister_.emplace(
      store_, &wall_seconds, [this](RoundIndex checkpoint) { keeper_.folded(checkpoint); },
      [this](RoundIndex) { keeper_.evaluated(); });
  CoreRunner::Observer observer;
  observer.on_notice = [this](const Notice& notice) { report(notice); };
  observer.on_done = [this](const Done& done) { done_ = done; };
  observer.on_status = [this](RunStatus& status, const Standing& standing) {
    complete(status, standing);
  };
  observer.on_arrival = [this](const std::optional<KeyId>& key, const std::string& peer,
                               const Message& first) -> std::variant<Standing, Message> {
    auto verdict = entrance_.gate().admit(key, peer, first, wall_seconds(), monotonic_now());
    const auto* const standing = std::get_if<Standing>(&verdict);
    if (!done_ || standing == nullptr) return verdict;
    entrance_.gate().gone(*standing);
    Goodbye goodbye = farewell_.answer(first);
    thanks_->thank(goodbye, *standing, entrance_.key(), core_->accounts());
    return goodbye;
  };
  observer.on_relayed = [this](const Standing& relay, const KeyId& key) {
    return entrance_.gate().admit_behind(relay, key, wall_seconds(), monotonic_now());
  };
  observer.on_goodbye = [this](Goodbye& goodbye, const Standing& standing) {
    thanks_->complete(goodbye, standing, entrance_.key());
  };
  observer.on_effects = [this](const Effects& effects) { thanks_->note(effects); };
  observer.on_gone = [this](const Standing& standing) { entrance_.gate().gone(standing); };
  runner_.emplace(io_, *core_, worker_, *persister_, std::move(observer));
  const volunteer::OwnDatasets datasets{data_.train.get(), data_.test.get()};
  own_.emplace(io_, *runner_, config_.run, datasets, threads_, console_,
               [this](const Error& error) {
                 if (!done_) runner_->fail(error);
               });
}

void MasterRun::warn_of_copy() {
  std::error_code error;
  const auto place = std::filesystem::canonical(config_.run.store, error);
  const std::string original = error ? "" : note_place(folder_.reach(), place.string());
  if (original.empty()) return;
  console_.log(LogLevel::kWarning,
               fmt::format("this store is a copy of {}, which still exists: both are one run under "
                           "one key, so that volunteers and lines of either fit both. Delete one "
                           "of them, or begin a new run",
                           original));
}

void MasterRun::train() {
  warn_of_copy();
  own_->start();
  watch_signals();
  runner_->start();
  show_progress();
  while (!done_) io_.run_one();
}

void MasterRun::close() {
  if (done_->outcome == Outcome::kFinished && entrance_.is_open()) {
    const Millis most(std::int64_t{config_.network.farewell_s} * 1000);
    farewell_.wait(io_, most, is_asked_to_end_, console_);
  }
  signals_.cancel();
  runner_->clock.stop();
  entrance_.close();
  own_->end();
  io_.run_for(kFarewell);  // returns when nothing is left to do
  tasks_.cancel();
  publish_web();
  own_.reset();
  runner_.reset();
  end_backups();
}

Result<std::vector<SettledRound>> MasterRun::settle() {
  if (auto undone = undo_work_of_banned(config_.run.store, store_, console_); !undone) {
    return undone.error();
  }
  std::optional<std::uint32_t> evaluate_every_epochs;
  if (data_.test) evaluate_every_epochs = config_.core.evaluate_every_epochs;
  return settle_staged(
      store_, evaluate_every_epochs,
      [&](RoundIndex round) {
        console_.log(LogLevel::kInfo,
                     fmt::format("round {} was trained when the master ended: its checkpoint is "
                                 "being written",
                                 round));
      },
      [&](const Error& error) {
        console_.log(LogLevel::kWarning,
                     error.message + ": the round that it belongs to is trained again");
      });
}

Ending MasterRun::run(bool goes_on) {
  auto settled = settle();
  if (!settled) return fail(settled.error(), ExitCode::kStore);
  const auto resume = read_resume_point(store_, std::move(*settled));
  if (!resume) return fail(resume.error(), ExitCode::kStore);
  // The last start may have stored the evaluation without keeping the checkpoint.
  if (resume->is_evaluated) keeper_.evaluated();
  if (is_complete(*resume)) return conclude_finished(true);

  if (auto loaded = worker_.load(store_); !loaded) return fail(loaded.error(), ExitCode::kStore);
  const auto accounts = store_.accounts();
  if (!accounts) return fail(accounts.error(), ExitCode::kStore);
  make_core(*resume, goes_on);
  thanks_.emplace(run_title(config_), config_.core.audit, *accounts);
  if (!goes_on) announce(config_, data_, resume->checkpoint, web_, console_);
  auto opened = entrance_.open({[this](Arrival arrival) { runner_->receive(std::move(arrival)); },
                                {[this](const Gate::Verdict& verdict) { runner_->expel(verdict); },
                                 [this](const KeyId& key, const std::string& name) {
                                   // Later, so that the administrator who bans it gets the answer
                                   // first.
                                   asio::post(io_, [this, key, name] {
                                     if (!done_) runner_->ban(key, name);
                                   });
                                 }}});

  if (!opened) return fail(folder_.named(opened.error()), ExitCode::kNetwork);
  if (entrance_.is_open()) {
    const bool is_plain = entrance_.key() == nullptr;
    note_.emplace(folder_.reach(),
                  RunningMaster{entrance_.address(), raw(resume->first_epoch), is_plain});
    // A reader of the event can count on the note.
    auto announced = entrance_.announce();
    if (!announced) return fail(folder_.named(announced.error()), ExitCode::kNetwork);
  }
  keeper_.keep_to_go_back(resume->checkpoint);
  keeper_.keep_if_due(resume->checkpoint);
  if (auto begun = begin_web(); !begun) return fail(begun.error(), ExitCode::kStore);
  train();
  close();
  return conclude(*done_);
}

Result<ExitCode> run_master(MasterConfig& config, const RunData& data, const StoreInFolder& store,
                            Console& console, RunWeb* web) {
  bool goes_on = false;
  for (;;) {
    const Ending ending = MasterRun(config, data, store, console, web).run(goes_on);
    if (!ending) return ending.error();
    if (*ending) return **ending;
    goes_on = true;
  }
}

}  // namespace gleaner
