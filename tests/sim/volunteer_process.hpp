// A volunteer as a process on a machine: the real `Client` over a clock, a thread and links that
// are simulated.
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
  // `index` names its machine: its links stand still together. `standing` is what the master takes
  // it for.
  VolunteerProcess(SimContext& context, MasterProcess& master, std::size_t index,
                   const Standing& standing, std::uint64_t slowness);

  // It tells this lie as the options say, until it is sent away. `on_lie` is told the round of what
  // was said, if it has one.
  void tell(const Lie& lie, std::function<void(std::optional<RoundIndex>)> on_lie,
            std::function<void()> on_sent_away);

  // From now on it goes to the relay, which outlives it.
  void go_through(RelayProcess& relay) { relay_ = &relay; }

  // It keeps to itself what the options say. `seen` outlives it.
  void withhold(Withholder& seen) { withholder_ = &seen; }

  void start();
  // It dies and starts again later, with as much memory as it offers. `is_told`: its kernel says
  // so.
  void kill(bool is_told);
  // It dies and does not come back by itself. `is_told`: its kernel says so.
  void remove(bool is_told);
  // It starts, also after it was removed.
  void bring_back();
  void ask_to_stop();
  void freeze(Instant until);
  void slow(Instant until, std::int64_t factor);
  // It starts again where loading a shard fails for want of memory, until `until`.
  void restart_without_memory(Instant until);

  [[nodiscard]] const KeyId& identity() const { return standing_.identity; }

  [[nodiscard]] const std::string& name() const { return name_; }

  [[nodiscard]] bool is_running() const { return client_ != nullptr; }

  [[nodiscard]] bool is_removed() const { return is_removed_; }

  // -- what its client stands on; nothing of it moves while the process is frozen
  [[nodiscard]] Instant now() const override { return context_.clock.now(); }

  void after(Micros delay, std::function<void()> call) override;
  void run(volunteer::Work work, std::function<void(volunteer::Worked)> done) override;

 private:
  using Dialled = volunteer::Client::Dialled;

  [[nodiscard]] volunteer::Client::Options options();
  // Calls, now or when it thaws.
  void pass(std::function<void()> call);
  // Lies, if it is to and the message allows it.
  void falsify(Message& message);
  // Whether it keeps the message to itself.
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
  Withholder* withholder_ = nullptr;  // null: it withholds nothing
  RelayProcess* relay_ = nullptr;     // null: it goes to the master
  bool is_removed_ = false;
  std::uint64_t keys_ = 1;  // that it has had
  std::uint64_t life_ = 0;  // grows with every start and end; closures of an earlier one are void
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
