// Runs a volunteer's core against a real master: performs its effects on a link, a compute thread
// and a timer. The same for a volunteer process and for one inside the master. I/O thread only; the
// executor has a thread of its own.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/net/link.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/thread_priority.hpp"
#include "volunteer/core/volunteer_core.hpp"
#include "volunteer/executor.hpp"

namespace gleaner::volunteer {

class Client {
 public:
  using Dialled = std::function<void(Result<std::shared_ptr<Link>>)>;

  struct Options {
    CoreConfig core;
    std::uint32_t threads = 1;
    int nice = kVolunteerNice;  // of the threads that compute
    bool pins_threads = false;  // each to a processor
    std::uint64_t memory_bytes = 0;
    PointStoreOptions points{};
    // Makes a connection and calls back, once, from the I/O thread.
    std::function<void(Dialled)> dial;
    // After every event and tick, with the memory that the shards take.
    std::function<void(const Snapshot&, std::uint64_t held_bytes)> on_change;
    // Once; the client does nothing afterwards.
    std::function<void(const Exit&)> on_exit;
  };

  Client(asio::io_context& io, Options options);
  // Waits for work that is being done.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start();
  // Asks the core to leave politely; the second time it leaves at once. `grace` is what the
  // hand-over may take, the configuration's unless given.
  void stop(std::string reason, std::optional<Millis> grace = {});
  // As PauseRequested has it: compute threads stop at their next block.
  void pause(std::string reason, Millis keep, Millis grace);
  void resume();

  struct Traffic {
    std::uint64_t up_bytes = 0;
    std::uint64_t down_bytes = 0;
  };

  // On the wire, in this process's life.
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  // Whether the compute thread has a piece of work under way.
  [[nodiscard]] bool is_working() const { return is_working_; }

 private:
  void handle(Event event);
  void perform(const Connect& effect);
  void perform(const Disconnect& effect);
  void perform(Send& effect);
  void perform(StartWork& effect);
  // Does the work that waits, if what is to be sent is little enough.
  void start_work();
  void perform(Exit& effect);
  void use(std::shared_ptr<Link> link);
  // A message that has arrived; one for which there is no memory ends the connection.
  void receive(const Bytes& payload, std::size_t wire_bytes);
  void hang_up();
  void tick();

  asio::io_context& io_;
  Options options_;
  VolunteerCore core_;
  ThreadPool pool_;
  Executor executor_;
  asio::thread_pool work_{1};
  asio::steady_timer timer_;
  std::shared_ptr<Link> link_;
  std::optional<StartWork> next_work_;  // until results of earlier work have left
  std::uint64_t connection_ = 0;        // callbacks of earlier ones are void
  std::uint64_t held_bytes_ = 0;        // after the last piece of work
  bool is_working_ = false;
  Traffic traffic_;
  bool has_exited_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);  // callbacks hold it weakly
};

}  // namespace gleaner::volunteer
