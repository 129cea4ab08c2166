// The work of a simulated cluster's processes, and its duration: real training (real_workload), or
// only the sizes and times of training (costed_workload), for questions about throughput.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/bytes.hpp"
#include "common/model/model_config.hpp"
#include "common/time.hpp"
#include "master/core/core_config.hpp"
#include "master/core/events.hpp"
#include "storage/engine/store.hpp"
#include "volunteer/core/events.hpp"

namespace gleaner {
class RunStore;
}

namespace gleaner::sim {

// The master's worker and store in one life of the process.
class MasterTasks {
 public:
  virtual ~MasterTasks() = default;
  virtual Event run(const WorkerTask& task) = 0;
  // None: the task has more steps, and each step takes time.
  virtual std::optional<Event> run(const StorageTask& task) = 0;
  [[nodiscard]] virtual Micros cost(const WorkerTask& task) const = 0;
  [[nodiscard]] virtual Micros cost(const StorageTask& task) const = 0;
  // Null without a store.
  virtual RunStore* store() = 0;
};

// A volunteer's executor in one life of the process.
class VolunteerTasks {
 public:
  using Work = volunteer::Work;

  virtual ~VolunteerTasks() = default;
  virtual Result<std::vector<Message>> execute(const Work& work) = 0;
  [[nodiscard]] virtual Micros cost(const Work& work) const = 0;
};

class Workload {
 public:
  // The state of a master that has just started.
  struct Opened {
    std::unique_ptr<MasterTasks> tasks;
    ResumePoint resume;
    bool has_resumed_fold = false;  // a decided fold was completed
  };

  virtual ~Workload() = default;
  // Opens the run as a starting master with `config` does. Calls `opened` before any change of the
  // store.
  virtual Result<Opened> open(std::unique_ptr<Store> disk, const CoreConfig& config,
                              const std::function<void(RunStore&)>& opened) = 0;
  virtual std::unique_ptr<VolunteerTasks> start_volunteer(std::uint64_t memory_bytes) = 0;
  // Fills in the settings that follow from the data.
  virtual void complete(CoreConfig& config) const = 0;
  [[nodiscard]] virtual const ModelConfig& model() const = 0;

  // The bytes of an encoded message on the wire.
  [[nodiscard]] virtual std::size_t wire_bytes(const Bytes& payload) const = 0;
};

}  // namespace gleaner::sim
