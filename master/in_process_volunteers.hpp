// Volunteers in the master's own process: the volunteers of `run.local`, the fallback that trains
// while nobody else is here, and the referee of audits. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "common/time.hpp"
#include "master/config/config.hpp"
#include "master/core/reports.hpp"
#include "master/see/console.hpp"
#include "master/shell/core_runner.hpp"
#include "volunteer/threaded_client.hpp"

namespace gleaner {

// Decides when the fallback takes part, so that a run without volunteers goes on. Pure; affects
// when work is computed, never what.
class Fallback {
 public:
  // Takes over when nobody has been here for `patience`, and steps back when somebody has been here
  // for as long: a volunteer that comes and goes does not make it flap.
  explicit Fallback(Millis patience) : patience_(patience) {}

  // To be called a few times a second with the number of other connected volunteers. Returns
  // whether the master's own is to take part from now on.
  bool observe(std::uint32_t others, Instant now) {
    const bool wants_change = (others == 0) != takes_part_;
    if (!wants_change) {
      since_.reset();
    } else if (!since_) {
      since_ = now;
    } else if (now - *since_ >= patience_) {
      takes_part_ = !takes_part_;
      since_.reset();
    }
    return takes_part_;
  }

 private:
  const Millis patience_;
  std::optional<Instant> since_;  // when the wish to change began
  bool takes_part_ = false;
};

// Volunteers in the master's process: the same cores, executors and messages, over memory links.
// I/O thread only.
struct LocalVolunteersOptions {
  std::uint32_t count = 1;
  std::uint32_t threads = 1;       // of each
  std::uint64_t memory_bytes = 0;  // of each
  Millis retry_first{500};
  volunteer::OwnDatasets datasets{};  // data sets that need not be sent
  bool is_referee = false;            // repeats disputed work and holds no shards
  // A volunteer has given up for good, which only a defect can cause.
  std::function<void(const std::string& name, const Error& error)> on_failure;
  // All of them have left after stop().
  std::function<void()> on_left;
};

class LocalVolunteers {
 public:
  // `runner` outlives this.
  LocalVolunteers(asio::io_context& io, CoreRunner& runner, const LocalVolunteersOptions& options);
  void start();
  // Asks them to hand their shards over and leave. `on_left` is called when they have.
  void stop(const std::string& reason);

 private:
  std::size_t present_;
  std::vector<std::unique_ptr<volunteer::ThreadedClient>> clients_;
};

class InProcessVolunteers {
 public:
  // All but `on_failure` outlive it. Each volunteer has `threads`. `on_failure` is called when a
  // volunteer has given up for good, which only a defect can cause.
  InProcessVolunteers(asio::io_context& io, CoreRunner& runner, const MasterConfig::Run& config,
                      const volunteer::OwnDatasets& datasets, std::uint32_t threads,
                      Console& console, std::function<void(const Error&)> on_failure);

  // Starts the volunteers of `run.local`.
  void start();
  // Starts the referee, which stays until the end. A second call does nothing.
  void start_referee();
  // To be called a few times a second: starts and ends the fallback of `run.fallback_local_s`.
  void observe(const RunProgress& now);
  // Ends them at once. Their posts may still run afterwards, so that this must outlive the loop.
  void end();

 private:
  [[nodiscard]] LocalVolunteersOptions options_of(std::uint32_t count);
  void start(std::uint32_t count);

  asio::io_context& io_;
  CoreRunner& runner_;
  const MasterConfig::Run& config_;
  const volunteer::OwnDatasets datasets_;
  const std::uint32_t threads_;
  Console& console_;
  const std::function<void(const Error&)> on_failure_;
  Fallback fallback_;
  std::optional<LocalVolunteers> local_;
  std::optional<LocalVolunteers> referee_;
  bool is_stepping_back_ = false;  // the fallback is leaving
};

}  // namespace gleaner
