// A checker watches a simulated cluster and tests one invariant. It gets every event and effect of
// the master's core and keeps its own books, so that the core's mistakes cannot hide. It steers
// nothing.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "master/core/master_core.hpp"
#include "storage/run_store.hpp"
#include "tests/sim/cluster.hpp"
#include "tests/sim/network/sim_log.hpp"

namespace gleaner::sim {

class Checker {
 public:
  explicit Checker(SimLog& log) : log_(log) {}

  virtual ~Checker() = default;
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // A master opened the store, and has not changed it yet.
  virtual void store_opened(RunStore&) {}

  // The master starts from here.
  virtual void master_started(const ResumePoint&, const CoreConfig&) {}

  // The master is about to put the run back to this checkpoint, to undo unaudited work. The disk
  // may fail before and after that.
  virtual void goes_back(RoundIndex) {}

  virtual void master_gone() {}

  // event(): before the core handles it. Then each effect, in order, and a call after all of them.
  virtual void event(const Event&) {}

  virtual void effect(const Effect&) {}

  virtual void state(const MasterCore&) {}

  // The worker begins a task; earlier tasks are done.
  virtual void working(const WorkerTask&) {}

  // The store's work is done, and the core does not know it yet.
  virtual void stored(const StorageTask&, const Event&, RunStore&) {}

  // Size of the work that waits at a volunteer.
  virtual void work_waiting(std::size_t) {}

  virtual void bytes_waiting(std::size_t) {}

  virtual void run_finished() {}

 protected:
  void fail(const std::string& what) { log_.violation(what); }

  SimLog& log_;
};

std::vector<std::unique_ptr<Checker>> all_checkers(SimLog& log, const ClusterOptions& options);

// The digest of a batch's whole gradient.
std::uint64_t digest_of(const std::vector<std::int32_t>& gradient);

std::unique_ptr<Checker> make_lease_checker(SimLog& log, const ClusterOptions& options);
std::unique_ptr<Checker> make_batch_checker(SimLog& log, const ClusterOptions& options);
std::unique_ptr<Checker> make_commit_checker(SimLog& log);
std::unique_ptr<Checker> make_checkpoint_checker(SimLog& log, const ClusterOptions& options);
std::unique_ptr<Checker> make_account_checker(SimLog& log, const ClusterOptions& options);
std::unique_ptr<Checker> make_bounds_checker(SimLog& log, const ClusterOptions& options);
// Counts rare branches; reports no violation.
std::unique_ptr<Checker> make_coverage_marks(SimLog& log);

}  // namespace gleaner::sim
