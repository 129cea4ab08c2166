// Volunteers inside the master's process: the same cores, executors and messages, over memory
// links. I/O thread only.
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "master/runner/core_runner.hpp"
#include "volunteer/threaded_client.hpp"

namespace gleaner {

struct LocalVolunteersOptions {
  std::uint32_t count = 1;
  std::uint32_t threads = 1;       // of each
  std::uint64_t memory_bytes = 0;  // of each
  Millis retry_first{500};
  bool is_referee = false;  // one that decides audits and is lent nothing else
  // A volunteer gave up for good, which only a defect can make it do.
  std::function<void(const std::string& name, const Error& error)> on_failure;
  // Each of them has left after stop().
  std::function<void()> on_left;
};

class LocalVolunteers {
 public:
  // `runner` outlives this.
  LocalVolunteers(asio::io_context& io, CoreRunner& runner, const LocalVolunteersOptions& options);
  void start();
  // Asks them to hand their shards over and leave; `on_left` tells when they have.
  void stop(const std::string& reason);

 private:
  std::size_t present_;
  std::vector<std::unique_ptr<volunteer::ThreadedClient>> clients_;
};

}  // namespace gleaner
