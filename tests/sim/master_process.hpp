// The master as a process on a machine: the real `CoreRunner` over simulated threads, links and
// clock, and a disk that outlives the process.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "master/shell/core_runner.hpp"
#include "storage/engine/memory_store.hpp"
#include "tests/sim/faulty_store.hpp"
#include "tests/sim/kept_out.hpp"
#include "tests/sim/network/sim_link.hpp"
#include "tests/sim/sim_context.hpp"

namespace gleaner::sim {

class MasterProcess : public WorkerThread, public StorageThread {
 public:
  MasterProcess(SimContext& context, ClusterResult& result);

  void start();

  // The process dies alone, or with its machine, which loses unsynced data. It starts again by
  // itself.
  enum class Death : std::uint8_t { kProcess, kMachine };
  void die(Death death);
  void ask_to_stop();

  [[nodiscard]] bool is_running() const { return runner_ != nullptr; }

  // Why the run stands still, in the master's words.
  [[nodiscard]] std::string waiting_for() const;

  // A connection arrived from volunteer `volunteer`, or from a stranger under any number. A banned
  // key gets a refusal, and the connection ends.
  ConnectionId admit(std::size_t volunteer, const Standing& standing, const LinkShape& shape,
                     Network::Hearing other);

  // A connection arrived that a relay's first message opens.
  ConnectionId receive(std::size_t machine, const LinkShape& shape, Network::Hearing other);

  // Calls `wanted` when an audit needs a volunteer in the master's own process, and `over` when the
  // process ends.
  void on_referee(std::function<void()> wanted, std::function<void()> over) {
    referee_wanted_ = std::move(wanted);
    referee_over_ = std::move(over);
  }

  // -- faults
  void fail_next_read() { disk_faults_.next_read_fails = true; }

  [[nodiscard]] const KeptOut& kept_out() const { return kept_out_; }

  // The owner bans the key.
  void ban(const KeyId& key, const std::string& name);
  void fail_next_write();
  void slow_disk(Instant until, std::int64_t factor);
  void fill_disk(Instant until);

  // The next start dies at one of its first writes; the next fold dies in its writes.
  void die_in_recovery() { dies_in_recovery_ = true; }

  void die_in_fold() { dies_in_fold_ = true; }

  [[nodiscard]] MemoryStore& disk() { return disk_; }

 private:
  void arm_disk();
  bool dies_of_disk(const Error& error);
  void run();
  void saw(const Event& event);
  void saw(const Effects& effects);
  void saw(const Notice& notice);
  void conclude(const Done& done);
  void train_again(const TrainAgainReason& reason);
  void cut_rates();
  // Puts the store back to before the unaudited work of banned keys.
  Result<void> undo_work_of_banned(RunStore& run);
  // On the worker's thread and on the store's thread.
  void run(WorkerTask task, std::function<void(Event)> done) override;
  void run(std::shared_ptr<const StorageTask> task,
           std::function<void(std::optional<Event>)> done) override;
  void store(const StorageTask& task, const std::function<void(std::optional<Event>)>& done);
  void note_checkpoint();
  void restart_later();
  [[nodiscard]] std::shared_ptr<SimLink> make_link();

  SimContext& context_;
  ClusterResult& result_;
  CoreConfig config_;
  MemoryStore disk_;
  std::map<RoundIndex, std::unique_ptr<MemoryStore>>
      kept_;  // kept checkpoints, for audits that may miss
  DiskFaults disk_faults_;
  std::size_t crash_points_used_ = 0;
  bool is_crash_point_armed_ = false;
  bool is_write_armed_ = false;
  bool dies_in_recovery_ = false;
  bool dies_in_fold_ = false;
  Instant disk_slow_until_{};
  std::int64_t disk_slowness_ = 1;
  Instant disk_full_until_{};

  std::uint64_t life_ = 0;  // grows with every start and death; closures of earlier lives are void
  std::unique_ptr<MasterTasks> tasks_;
  std::unique_ptr<MasterCore> core_;
  std::unique_ptr<CoreRunner> runner_;
  Instant worker_free_{};
  bool is_within_fold_ = false;  // some steps of the fold are done
  KeptOut kept_out_;
  std::function<void()> referee_wanted_;
  std::function<void()> referee_over_;
};

}  // namespace gleaner::sim
