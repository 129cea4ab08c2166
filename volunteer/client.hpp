// Performs the effects of a volunteer's core on a link, a compute thread and a clock. Serves a
// volunteer process, a volunteer inside the master, and a simulation. I/O thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/shell_interfaces.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "volunteer/core/volunteer_core.hpp"

namespace gleaner::volunteer {

// The result of a piece of work, and the bytes of shards and examples after it.
struct Worked {
  Result<std::vector<Message>> replies;
  std::uint64_t held_bytes = 0;
};

using WorkThread = TaskThread<Work, Worked>;

// Threads that perform units without a hidden layer.
class Lanes {
 public:
  virtual ~Lanes() = default;

  // Called with a performed unit and the generation of the last Reset before it.
  using OnDone = std::function<void(std::uint64_t generation, Worked worked)>;

  // Calls `on_done` from the I/O thread.
  virtual void start(OnDone on_done) = 0;
  // Forbids or allows beginning units. A unit that has begun is finished.
  virtual void let_begin(bool may_begin) = 0;
  [[nodiscard]] virtual bool is_working() const = 0;
};

class Client {
 public:
  using Dialled = std::function<void(Result<std::shared_ptr<Link>>)>;

  struct Options {
    VolunteerCoreConfig core;
    Millis tick{100};
    // While more bytes wait to be sent, no work begins.
    std::size_t send_queue_bytes = std::size_t{32} << 20;
    // Makes a connection, and calls back once, from the I/O thread.
    std::function<void(Dialled)> dial;
    // Called after every event and tick, with the bytes of the shards.
    std::function<void(const Snapshot&, std::uint64_t held_bytes)> on_change;
    // Called once; the client does nothing afterwards.
    std::function<void(const Exit&)> on_exit;
    // Completes an introduction before it is sent. May be empty.
    std::function<void(Hello&)> on_hello{};
    // Called before the core handles an event, and before its effects are performed. May be empty.
    std::function<void(const Event&)> on_event{};
    std::function<void(const VolunteerCore&, const Effects&)> on_effects{};
  };

  // All outlive the client. The core opens `gate` while `work` and the lanes may compute. Without
  // lanes `work` also performs units.
  Client(Clock& clock, WorkThread& work, PauseGate& gate, Options options, Lanes* lanes = nullptr);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void start();
  // Asks the core to leave politely; the second call makes it leave at once. `grace` bounds the
  // hand-over; unset: the configured grace.
  void stop(std::string reason, std::optional<Millis> grace = {});
  // See PauseRequested. Compute threads stop at their next block.
  void pause(std::string reason, Millis keep, Millis grace);
  void resume();

  struct Traffic {
    std::uint64_t up_bytes = 0;
    std::uint64_t down_bytes = 0;
  };

  // On the wire, since this process started.
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  [[nodiscard]] bool is_working() const {
    return is_working_ || (lanes_ != nullptr && lanes_->is_working());
  }

 private:
  void handle(Event event);
  void perform(const Connect& effect);
  void perform(const Disconnect& effect);
  void perform(Send& effect);
  void perform(StartWork& effect);
  // Begins the waiting piece of work unless too much waits to be sent.
  void start_work();
  [[nodiscard]] bool is_link_busy() const;
  void steer_lanes();
  void perform(Exit& effect);
  void use(std::shared_ptr<Link> link);
  // Takes a message. A message for which there is no memory ends the connection.
  void receive(const Bytes& payload, std::size_t wire_bytes);
  void hang_up();
  void tick();

  Clock& clock_;
  WorkThread& work_;
  PauseGate& gate_;
  Options options_;
  Lanes* const lanes_;  // may be null
  VolunteerCore core_;
  std::shared_ptr<Link> link_;
  std::optional<StartWork> next_work_;  // waits until results of earlier work have left
  std::uint64_t connection_ = 0;  // number of the connection; callbacks of earlier ones are void
  std::uint64_t held_bytes_ = 0;  // after the last piece of work
  bool is_working_ = false;
  Traffic traffic_;
  bool has_exited_ = false;
  Lifetime lifetime_;
};

}  // namespace gleaner::volunteer
