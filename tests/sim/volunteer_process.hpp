// A volunteer as a process on a machine: the real `Client` over a simulated clock, thread and
// links.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/master_process.hpp"
#include "tests/sim/network/sim_link.hpp"
#include "tests/sim/relay_process.hpp"
#include "tests/sim/sim_context.hpp"
#include "tests/support/lies.hpp"
#include "volunteer/client.hpp"

namespace gleaner::sim {

class VolunteerProcess : public Clock, public volunteer::WorkThread {
 public:
  // `index` names its machine: the machine's links stall together. `standing` is its standing with
  // the master.
  VolunteerProcess(SimContext& context, MasterProcess& master, std::size_t index,
                   const Standing& standing, std::uint64_t slowness);

  // Tells this lie by the options, until the master refuses it. `on_lie` gets the false message's
  // round, if any.
  void tell(const Lie& lie, std::function<void(std::optional<RoundIndex>)> on_lie,
            std::function<void()> on_sent_away);

  // Connects to the relay from now on. The relay outlives it.
  void go_through(RelayProcess& relay) { relay_ = &relay; }

  // Withholds messages by the options. `seen` outlives it.
  void withhold(Withholder& seen) { withholder_ = &seen; }

  void start();
  // Dies and starts again later, with memory for all offered shards. `is_told`: its kernel closes
  // the connections.
  void kill(bool is_told);
  // Dies and does not come back by itself.
  void remove(bool is_told);
  // Starts, also after remove().
  void bring_back();
  void ask_to_stop();
  void freeze(Instant until);
  void slow(Instant until, std::int64_t factor);
  // Starts again; until `until` loading a shard fails for want of memory.
  void restart_without_memory(Instant until);

  [[nodiscard]] const KeyId& identity() const { return standing_.identity; }

  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] bool is_running() const { return client_ != nullptr; }

  [[nodiscard]] bool is_removed() const { return is_removed_; }

  // -- the client's interfaces, which stand still while the process is frozen
  [[nodiscard]] Instant now() const override { return context_.clock.now(); }

  void after(Micros delay, std::function<void()> call) override;
  void run(volunteer::Work work, std::function<void(volunteer::Worked)> done) override;

 private:
  using Dialled = volunteer::Client::Dialled;

  [[nodiscard]] volunteer::Client::Options options();
  // Calls the function now, or when the process thaws.
  void pass(std::function<void()> call);
  // Lies, where the options and the message allow it.
  void falsify(Message& message);
  // Whether it withholds the message.
  bool withholds(Message& message);
  void saw(const volunteer::Event& event);
  void saw(const volunteer::VolunteerCore& core, const volunteer::Effects& effects);
  void conclude(const volunteer::Exit& exit);
  void dial(Dialled on_dialled);
  void connect(const Dialled& on_dialled);
  void thaw(std::uint64_t life);
  void end(bool is_told);
  void come_again();
  void start_later();

  SimContext& context_;
  MasterProcess& master_;
  const std::size_t index_;
  Standing standing_;
  const std::uint64_t slowness_;
  const std::string name_;
  LinkShape shape_;
  Lie lie_;
  std::function<void(std::optional<RoundIndex>)> on_lie_;
  std::function<void()> on_sent_away_;
  Withholder* withholder_ = nullptr;  // null: withholds nothing
  RelayProcess* relay_ = nullptr;     // null: connects to the master
  bool is_removed_ = false;
  std::uint64_t keys_ = 1;  // keys so far
  std::uint64_t life_ = 0;  // grows with every start and end; closures of earlier lives are void
  std::unique_ptr<VolunteerTasks> tasks_;
  PauseGate gate_;
  std::unique_ptr<volunteer::Client> client_;
  std::shared_ptr<SimLink> last_link_;  // may be null
  Instant frozen_until_{};
  std::vector<std::function<void()>> while_frozen_;
  Instant slow_until_{};
  std::int64_t slow_factor_ = 1;
  Instant starved_until_{};
  Instant work_free_{};
};

}  // namespace gleaner::sim
