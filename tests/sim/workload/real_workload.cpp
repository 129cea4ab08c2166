#include "tests/sim/workload/real_workload.hpp"

#include <optional>
#include <utility>

#include "master/shell/persister.hpp"
#include "master/shell/resume_point.hpp"
#include "master/shell/worker.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/wide_start.hpp"
#include "storage/run_store.hpp"
#include "volunteer/executor.hpp"

namespace gleaner::sim {
namespace {

constexpr Micros kWorkerCost{500};
constexpr Micros kAddingCost = kWorkerCost / 10;
constexpr Micros kStorageCost{1'000};
constexpr Micros kWorkCost{1'000};

std::int64_t no_wall_clock() {
  return 0;
}

class RealMaster : public MasterTasks {
 public:
  RealMaster(const ModelConfig& model, const PackedDataset& train, const PackedDataset& test,
             std::vector<std::uint32_t> label_counts, ThreadPool& pool, bool lends_input,
             std::unique_ptr<RunStore> store)
      : store_(std::move(store)),
        worker_(model, train, &test, std::move(label_counts), pool, lends_input),
        persister_(*store_, &no_wall_clock) {}

  Result<void> load() { return worker_.load(*store_); }

  Event run(const WorkerTask& task) override { return worker_.run(task); }

  std::optional<Event> run(const StorageTask& task) override { return persister_.run(task); }

  [[nodiscard]] Micros cost(const WorkerTask& task) const override {
    return std::holds_alternative<AddGradientsTask>(task) ? kAddingCost : kWorkerCost;
  }

  [[nodiscard]] Micros cost(const StorageTask&) const override { return kStorageCost; }

  RunStore* store() override { return store_.get(); }

 private:
  std::unique_ptr<RunStore> store_;
  Worker worker_;
  Persister persister_;
};

class RealVolunteer : public VolunteerTasks {
 public:
  RealVolunteer(ThreadPool& pool, std::uint64_t memory_bytes) : executor_(pool, memory_bytes) {}

  Result<std::vector<Message>> execute(const Work& work) override {
    return executor_.execute_all(work);
  }

  [[nodiscard]] Micros cost(const Work&) const override { return kWorkCost; }

 private:
  volunteer::Executor executor_;
};

}  // namespace

RealWorkload::RealWorkload(const ModelConfig& model, const PackedDataset& train,
                           const PackedDataset& test)
    : model_(model), train_(train), test_(test), label_counts_(count_labels(train)) {}

Result<Workload::Opened> RealWorkload::open(std::unique_ptr<Store> disk, const CoreConfig& config,
                                            const std::function<void(RunStore&)>& opened) {
  RunIdentity identity;
  identity.model = model_;
  std::unique_ptr<WideStart> start;
  if (is_wide(model_)) start = WideStart::open(model_, train_).value();
  auto store = RunStore::create_or_open(std::move(disk), identity, label_counts_,
                                        start ? start->rows() : InitialRows());
  if (!store) return store.error();
  RunStore& run = **store;
  opened(run);
  Opened master;
  std::optional<Error> damage;
  std::optional<std::uint32_t> evaluate_every_epochs;
  if (config.test_points > 0) evaluate_every_epochs = config.evaluate_every_epochs;
  auto settled = settle_staged(
      run, evaluate_every_epochs, [&](RoundIndex) { master.has_resumed_fold = true; },
      [&](const Error& error) { damage = error; });
  if (!settled) return settled.error();
  if (damage) return *damage;
  auto resume = read_resume_point(run, std::move(*settled));
  if (!resume) return resume.error();
  master.resume = std::move(*resume);
  auto tasks = std::make_unique<RealMaster>(model_, train_, test_, label_counts_, pool_,
                                            config.lends_input, std::move(*store));
  if (auto loaded = tasks->load(); !loaded) return loaded.error();
  master.tasks = std::move(tasks);
  return master;
}

std::unique_ptr<VolunteerTasks> RealWorkload::start_volunteer(std::uint64_t memory_bytes) {
  return std::make_unique<RealVolunteer>(pool_, memory_bytes);
}

void RealWorkload::complete(CoreConfig& config) const {
  config.test_points = test_.points();
  config.test_fingerprint = test_.fingerprint();
  config.label_counts = label_counts_;
}

}  // namespace gleaner::sim
