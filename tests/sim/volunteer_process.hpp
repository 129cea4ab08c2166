// A volunteer as a process on a machine: its core, its compute thread, its link. What
// `volunteer/client` does with real threads and sockets.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/sim/master_process.hpp"
#include "tests/sim/sim_context.hpp"
#include "tests/support/lies.hpp"

namespace gleaner::sim {

class VolunteerProcess {
 public:
  // `index` names its machine: its links stand still together. `standing` is what the master takes
  // it for.
  VolunteerProcess(SimContext& context, MasterProcess& master, std::size_t index,
                   const Standing& standing, std::uint64_t slowness);

  // It tells this lie as the options say, until it is sent away. `on_lie` is told the round of what
  // was said, if it has one.
  void tell(const Lie& lie, std::function<void(std::optional<RoundIndex>)> on_lie,
            std::function<void()> on_sent_away);

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

  [[nodiscard]] bool is_running() const { return core_ != nullptr; }

 private:
  // Lies, if it is to and the message allows it.
  void falsify(Message& message);
  void tick(std::uint64_t life);
  void thaw(std::uint64_t life);
  void handle(std::uint64_t life, volunteer::Event event);
  void perform(volunteer::Connect& effect);
  void perform(volunteer::Disconnect& effect);
  void perform(volunteer::Send& effect);
  void perform(volunteer::StartWork& effect);
  void perform(volunteer::Exit& effect);
  // Does the work that waits, if what is to be sent is little enough.
  void start_work();
  // Hears the first of what came while the core wanted no more.
  void listen_again();
  void disconnected();
  void connect(std::uint64_t life);
  void received(std::uint64_t life, const Packet& packet);
  void end(bool is_told);
  void start_later();

  SimContext& context_;
  MasterProcess& master_;
  const std::size_t index_;
  const Standing standing_;
  const std::uint64_t slowness_;
  const std::string name_;
  LinkShape link_;
  Lie lie_;
  std::function<void(std::optional<RoundIndex>)> on_lie_;
  std::function<void()> on_sent_away_;
  bool is_removed_ = false;
  std::uint64_t life_ = 0;  // grows with every start and end; closures of an earlier one are void
  std::unique_ptr<volunteer::VolunteerCore> core_;
  std::unique_ptr<VolunteerTasks> tasks_;
  ConnectionId connection_ = 0;  // 0: none
  std::optional<volunteer::StartWork> next_work_;
  std::size_t waiting_bytes_ = 0;  // to be sent, when it was last looked at
  Instant waiting_since_{};        // it has not become less
  // What came on this connection while the core wanted no more; nullopt is its end.
  std::deque<std::optional<Packet>> unheard_;
  Instant frozen_until_{};
  std::deque<volunteer::Event> while_frozen_;
  Instant slow_until_{};
  std::int64_t slow_factor_ = 1;
  Instant starved_until_{};
  Instant work_free_{};
};

}  // namespace gleaner::sim
