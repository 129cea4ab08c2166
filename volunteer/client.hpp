// Performs what a volunteer's core decides, on a link, a thread that computes and a clock: those of
// a volunteer process, of one inside the master, or of a simulation. I/O thread only.
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

// The result of a piece of work, and the bytes that shards and points take after it.
struct Worked {
  Result<std::vector<Message>> replies;
  std::uint64_t held_bytes = 0;
};

using WorkThread = TaskThread<Work, Worked>;

// The threads that perform units without a hidden layer, beside the work thread.
class Lanes {
 public:
  virtual ~Lanes() = default;

  // Called with a unit that a lane has performed, and the generation of the last Reset before it.
  using OnDone = std::function<void(std::uint64_t generation, Worked worked)>;

  // Calls `on_done` from the I/O thread.
  virtual void start(OnDone on_done) = 0;
  // While they may not begin units, they finish those that have begun.
  virtual void let_begin(bool may_begin) = 0;
  [[nodiscard]] virtual bool is_working() const = 0;
};

class Client {
 public:
  using Dialled = std::function<void(Result<std::shared_ptr<Link>>)>;

  struct Options {
    VolunteerCoreConfig core;
    Millis tick{100};
    // While more waits to be sent, no work is begun whose results would have to wait as well.
    std::size_t send_queue_bytes = std::size_t{32} << 20;
    // Makes a connection and calls back, once, from the I/O thread.
    std::function<void(Dialled)> dial;
    // After every event and tick, with the memory that the shards take.
    std::function<void(const Snapshot&, std::uint64_t held_bytes)> on_change;
    // Once; the client does nothing afterwards.
    std::function<void(const Exit&)> on_exit;
    // Before the core handles an event, and before what follows from it is performed. May be empty.
    std::function<void(const Event&)> on_event{};
    std::function<void(const VolunteerCore&, const Effects&)> on_effects{};
  };

  // All outlive the client. `gate` is open while the core lets `work` and the lanes compute.
  // Without lanes `work` performs units as well.
  Client(Clock& clock, WorkThread& work, PauseGate& gate, Options options, Lanes* lanes = nullptr);
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

  // Whether a thread has a piece of work under way.
  [[nodiscard]] bool is_working() const {
    return is_working_ || (lanes_ != nullptr && lanes_->is_working());
  }

 private:
  void handle(Event event);
  void perform(const Connect& effect);
  void perform(const Disconnect& effect);
  void perform(Send& effect);
  void perform(StartWork& effect);
  // Does the work that waits, if what is to be sent is little enough.
  void start_work();
  [[nodiscard]] bool is_link_busy() const;
  void steer_lanes();
  void perform(Exit& effect);
  void use(std::shared_ptr<Link> link);
  // A message that has arrived; one for which there is no memory ends the connection.
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
  std::optional<StartWork> next_work_;  // until results of earlier work have left
  std::uint64_t connection_ = 0;        // callbacks of earlier ones are void
  std::uint64_t held_bytes_ = 0;        // after the last piece of work
  bool is_working_ = false;
  Traffic traffic_;
  bool has_exited_ = false;
  Lifetime lifetime_;
};

}  // namespace gleaner::volunteer
