// Performs the effects of the master's core: links carry its messages, one thread does its worker
// tasks, one its storage tasks, a clock passes its time. Programs and simulations supply these. I/O
// thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/access/standing.hpp"
#include "common/net/shell_interfaces.hpp"
#include "master/core/master_core.hpp"
#include "master/shell/persister.hpp"
#include "master/shell/relay_end.hpp"

namespace gleaner {

using WorkerThread = TaskThread<WorkerTask, Event>;
// Runs one task at a time; answers like Persister::run.
using StorageThread = TaskThread<std::shared_ptr<const StorageTask>, std::optional<Event>>;

struct RunnerPace {
  Millis tick{100};
  // A task without room on the disk is tried again at this interval.
  Millis storage_retry{1'000};
};

class CoreRunner {
 public:
  struct Observer {
    std::function<void(const Notice&)> on_notice;
    std::function<void(const Done&)> on_done;  // once; nothing follows
    // Adds facts to an answer that the core does not know, and removes those that `standing` may
    // not see. May be empty.
    std::function<void(RunStatus&, const Standing& standing)> on_status{};
    // Completes and signs the core's thanks for a volunteer's work. If empty, nobody is thanked.
    std::function<void(Goodbye&, const Standing& standing)> on_goodbye{};
    // Decides on the first message of a network connection: the standing under which it takes part,
    // or the answer after which it ends. Required for receive().
    std::function<std::variant<Standing, Message>(const std::optional<KeyId>& key,
                                                  const std::string& peer, const Message& first)>
        on_arrival{};
    // Decides the same for a volunteer with this key behind an admitted relay.
    std::function<std::variant<Standing, Message>(const Standing& relay, const KeyId& key)>
        on_relayed{};
    // A connection that on_arrival or on_relayed admitted has ended. May be empty.
    std::function<void(const Standing&)> on_gone{};
    // Called before the core handles an event, and before its effects are performed. May be empty.
    std::function<void(const Event&)> on_event{};
    std::function<void(const Effects&)> on_effects{};
  };

  // Everything outlives the runner. It ignores answers that threads give after its end.
  CoreRunner(Clock& clock, MasterCore& core, WorkerThread& worker, StorageThread& storage,
             Observer observer, const RunnerPace& pace = {});
  ~CoreRunner();
  CoreRunner(const CoreRunner&) = delete;
  CoreRunner& operator=(const CoreRunner&) = delete;

  void start();
  // Admits a connection within the process with this standing. Its first message must be a Hello.
  void admit(std::shared_ptr<Link> link, const std::string& peer, const Standing& standing);
  // Takes a connection from the network. Its first message decides.
  void receive(Arrival arrival);
  // Ends the sessions for which `verdict` has a refusal.
  void expel(const std::function<std::optional<Refusal>(const Standing&)>& verdict);

  // Keeps the key of a volunteer of this name out, and undoes its unaudited work.
  void ban(const KeyId& key, const std::string& name) { handle(Banned{key, name}); }

  void stop();

  // Ends the core: something outside it failed.
  void fail(Error error) { handle(TaskFailed{std::move(error)}); }

  [[nodiscard]] RunProgress progress() const { return core_.progress(); }

  // The whole status, with the observer's additions.
  [[nodiscard]] RunStatus status() const;

  [[nodiscard]] std::vector<AccountRecord> accounts() const { return core_.accounts(); }

  [[nodiscard]] bool is_done() const { return is_done_; }

 private:
  // A channel of a relay.
  struct Channel {
    RelayId relay{};
    std::uint32_t number = 0;
  };

  struct Connection {
    std::shared_ptr<Link> link;  // null for a channel
    std::string peer;
    std::optional<KeyId> key;
    std::optional<Standing> standing;  // unset until it is admitted and known to the core
    std::optional<Channel> channel{};
    std::optional<RelayId> relay{};  // set for a relay
  };

  SessionId connect(Connection connection);
  void start(SessionId id);
  void arrived(SessionId id, Connection& connection, const Result<Message>& first);
  // Sends the reason and closes.
  void send_away(SessionId id, Message last);
  // -- relays
  void admit_relay(SessionId id, const Standing& standing, const RelayHello& hello);
  void relay_said(RelayId id, const Bytes& payload, std::size_t wire_bytes);
  // Messages of a relay itself. The table of messages says which types these are.
  void hear(RelayId id, RelayEnd& relay, const RelayFrame& frame, std::size_t wire_bytes);
  Result<void> hear(RelayId id, RelayEnd& relay, RelaySum& sum, std::size_t wire_bytes);
  void hear(RelayId id, RelayEnd& relay, const RelayOpen& open, std::size_t wire_bytes);
  void hear(RelayId id, RelayEnd& relay, const RelayClose& close, std::size_t wire_bytes);
  void hear(RelayId id, RelayEnd& relay, const Heartbeat& heartbeat, std::size_t wire_bytes);
  void close_channel(const Channel& channel, std::string reason);
  void relay_closed(RelayId id, const std::string& reason);
  void perform(const SplitSum& effect);
  void perform(const CloseRelay& effect);

  void handle(Event event);
  void perform(Send& effect);
  void perform(const CloseSession& effect);
  void perform(WorkerTask& task);
  void perform(StorageTask& task);
  void do_storage();
  void stored(std::optional<Event> done);
  void perform(const Notice& effect);
  void perform(const Done& effect);
  void received(SessionId id, const Bytes& payload, std::size_t wire_bytes);
  void closed(SessionId id, std::string reason);
  void tick();

  Clock& clock_;
  MasterCore& core_;
  WorkerThread& worker_;
  StorageThread& storage_;
  Observer observer_;
  const RunnerPace pace_;
  StorageQueue storage_queue_;
  bool is_storing_ = false;
  std::map<SessionId, Connection> connections_;
  std::uint64_t last_session_ = 0;
  std::map<RelayId, RelayEnd> relays_;
  std::uint64_t last_relay_ = 0;
  bool is_done_ = false;
  Lifetime lifetime_;
};

}  // namespace gleaner
