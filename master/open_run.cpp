#include "master/open_run.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "common/data/name_table.hpp"
#include "common/host_port.hpp"
#include "common/model/run_plan.hpp"
#include "common/thread_pool.hpp"
#include "common/time.hpp"
#include "master/master_run.hpp"
#include "master/room_wait.hpp"
#include "master/see/run_web.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/infer/predict_desk.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

// Bounds the cost of questions from the page: this fraction of a processor, on a thread that gives
// way to all others, and about this much memory.
constexpr AnswerLimits kPredictLimits{0.02, 5, 16};
constexpr std::uint64_t kPredictInputBytesMax = std::uint64_t{1} << 30;
constexpr std::uint64_t kPredictKeptBytesMax = std::uint64_t{256} << 20;

// Reads the store beside the run, like gleaner predict.
std::unique_ptr<PredictDesk> predict_desk(const MasterConfig& config, const ModelConfig& model) {
  AnsweringOptions options;
  options.nice = kNiceMax;
  options.kept_bytes_max = kPredictKeptBytesMax;
  options.limits = kPredictLimits;
  const std::uint64_t input_bytes = std::uint64_t{model.features} * model.hidden * sizeof(float);
  PredictDesk::Source source;
  source.open = [store = config.run.store, input_bytes]() -> Result<std::unique_ptr<RunStore>> {
    if (input_bytes > kPredictInputBytesMax) {
      return Error{ErrorCode::kResources,
                   "the model is too large to be asked beside its training: ask it with gleaner "
                   "serve " +
                       store};
    }
    auto opened = open_rocks_store(store, OpenMode::kReadOnly);
    if (!opened) return opened.error();
    return RunStore::open(std::move(*opened));
  };
  const std::string& data = config.data.test.empty() ? config.data.train : config.data.test;
  const auto folder = std::filesystem::path(data).parent_path();
  return PredictDesk::on_demand(std::move(source), options, folder.empty() ? "." : folder.string());
}

// The portable volunteer that was built in the folder of builds that has this program; empty where
// there is none.
std::string built_program() {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto builds = self.parent_path().parent_path().parent_path();
  const auto file = builds / "portable" / "gleaner-volunteer";
  return std::filesystem::is_regular_file(file, error) ? file.string() : "";
}

class OpenedRun {
 public:
  ~OpenedRun() { console_.tell({}); }

  OpenedRun(const OpenedRun&) = delete;
  OpenedRun& operator=(const OpenedRun&) = delete;

  OpenedRun(MasterConfig config, const RunData& data, Console& console)
      : config_(std::move(config)),
        data_(data),
        console_(console),
        rounds_(RunPlan(data.model).round_count()) {
    config_.evaluation.sample = data.evaluation_sample;
  }

  ExitCode run();

 private:
  // An error means that there is no room.
  Result<ExitCode> open_and_run();
  // An error names a wrong setting. If the page fails for another reason, the run does without it.
  Result<void> open_web();
  ExitCode stopped();

  MasterConfig config_;
  const RunData& data_;
  Console& console_;
  const RoundIndex rounds_;
  RoundIndex checkpoint_ = 0;  // when the store was last seen
  RoomWanted room_{config_.run.disk_reserve};
  // the store's; held also while the store is closed for lack of room
  std::shared_ptr<HeldFolder> folder_;
  std::optional<Pause> pause_;
  std::unique_ptr<RunWeb> web_;  // the page; outlives a store that is closed for lack of room
};

}  // namespace

Result<ExitCode> OpenedRun::open_and_run() {
  const auto fail = [&](const Error& error) -> Result<ExitCode> {
    if (needs_room(error.code)) return error;
    console_.event(RunFailed{error, ExitCode::kStore});
    return ExitCode::kStore;
  };
  RocksStoreOptions options;
  options.reserve_bytes = config_.run.disk_reserve;
  if (!folder_) {
    auto held = hold_store_folder(config_.run.store);
    if (!held) return fail(held.error());
    folder_ = std::move(*held);
  }
  auto rocks = open_rocks_store(folder_, options);
  if (!rocks) return fail(rocks.error());
  RunIdentity identity{data_.model, effective_settings(config_, data_.model)};
  identity.settings.merge(
      name_file_settings(config_.data.train, {data_.model.features, data_.model.labels}));
  set_data_folder(identity, config_.data.train);
  if (data_.test) set_test_file(identity, config_.data.test, data_.test->fingerprint());
  if (is_wide(data_.model)) {
    identity.settings[kWideWeightsKey] = wide_weights_text(data_.wide_weights);
  }
  if (!data_.trials.empty()) identity.settings[kRecipeTrialsKey] = trials_text(data_.trials);
  identity.begins_new_test = config_.evaluation.new_test;
  InitialRows rows;
  if (data_.initial && !is_wide(data_.model)) rows = data_.initial->rows(data_.model);
  if (data_.wide_start) rows = data_.wide_start->rows();
  auto store = RunStore::create_or_open(std::move(*rocks), identity, data_.label_counts, rows);
  if (!store) return fail(store.error());
  if (pause_) {
    if (pause_->is_stopped()) return stopped();
    console_.event(Resumed{pause_->seconds()});
    pause_.reset();
  }
  Result<ExitCode> exit = run_master(config_, data_, {**store, *folder_}, console_, web_.get());
  checkpoint_ = (*store)->checkpoint();
  return exit;
}

ExitCode OpenedRun::stopped() {
  console_.event(RunStopped{checkpoint_, rounds_, false, config_.run.store});
  return ExitCode::kOk;
}

// A run goes on without its page.
Result<void> OpenedRun::open_web() {
  if (config_.network.http.empty()) return {};
  std::optional<ServedProgram> program;
  const std::string& file = config_.network.serve_program;
  const bool is_named = file != "auto" && file != "off" && !file.empty();
  if (const std::string path = is_named         ? file
                               : file == "auto" ? built_program()
                                                : "";
      !path.empty()) {
    auto loaded = ServedProgram::load(path);
    if (!loaded && is_named) return loaded.error();
    if (loaded) program = std::move(*loaded);
  }
  auto web = RunWeb::open(*parse_host_port(config_.network.http), data_.model,
                          predict_desk(config_, data_.model), std::move(program),
                          !config_.network.insecure);
  if (!web) {
    console_.log(
        LogLevel::kWarning,
        web.error().message + "; the run goes on without it: --http names another address");
    return {};
  }
  web_ = std::move(*web);
  console_.tell([this](const RunEvent& event) { web_->event(event); });
  return {};
}

ExitCode OpenedRun::run() {
  if (auto opened = open_web(); !opened) {
    console_.event(RunFailed{opened.error(), ExitCode::kUsage});
    return ExitCode::kUsage;
  }
  for (;;) {
    const Result<ExitCode> exit = open_and_run();
    if (exit) return *exit;
    if (!pause_) {
      pause_.emplace();
      console_.event(Paused{exit.error().message});
    }
    const auto is_in_place = [&] { return !folder_ || folder_->check(); };
    const std::string& place = folder_ ? folder_->reach() : config_.run.store;
    const bool has_room = pause_->wait_for_room(place, room_.after(exit.error(), checkpoint_), [&] {
      if (web_) web_->publish_paused(exit.error().message, monotonic_now());
      return is_in_place();
    });
    // Otherwise the next opening reports the state of the folder.
    if (!has_room && is_in_place()) return stopped();
  }
}

ExitCode open_and_run(MasterConfig config, const RunData& data, Console& console) {
  return OpenedRun(std::move(config), data, console).run();
}

}  // namespace gleaner
