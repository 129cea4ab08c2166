// Performs what the master's core decides: links carry its messages, one thread does its worker
// tasks, one its storage tasks, a clock lets its time pass. Programs and simulations give it
// theirs. I/O thread only.
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
#include "master/shell/storage_queue.hpp"

namespace gleaner {

using WorkerThread = TaskThread<WorkerTask, Event>;
// Given one task at a time; answers as Persister::run does.
using StorageThread = TaskThread<std::shared_ptr<const StorageTask>, std::optional<Event>>;

struct RunnerPace {
  Millis tick{100};
  // A task for which the disk had no room is tried again this often.
  Millis storage_retry{1'000};
};

class CoreRunner {
 public:
  struct Observer {
    std::function<void(const Notice&)> on_notice;
    std::function<void(const Done&)> on_done;  // once; nothing follows
    // Adds to an answer what the core does not know, and takes out what is not for `standing`. May
    // be empty.
    std::function<void(RunStatus&, const Standing& standing)> on_status{};
    // Completes what the core says of a volunteer's work in this process's life, and signs it.
    // Where it is empty, nobody is thanked.
    std::function<void(Goodbye&, const Standing& standing)> on_goodbye{};
    // The first message of a connection from the network: as whom it takes part, or the answer
    // after which it ends. Not empty if receive() is called.
    std::function<std::variant<Standing, Message>(const std::optional<KeyId>& key,
                                                  const std::string& peer, const Message& first)>
        on_arrival{};
    // Somebody with this key has come to a relay that was admitted: likewise.
    std::function<std::variant<Standing, Message>(const Standing& relay, const KeyId& key)>
        on_relayed{};
    // Who was admitted by on_arrival or on_relayed has gone. May be empty.
    std::function<void(const Standing&)> on_gone{};
    // Before the core handles an event, and before what follows from it is performed. May be empty.
    std::function<void(const Event&)> on_event{};
    std::function<void(const Effects&)> on_effects{};
  };

  // Everything outlives the runner; answers that the threads give afterwards are not heard.
  CoreRunner(Clock& clock, MasterCore& core, WorkerThread& worker, StorageThread& storage,
             Observer observer, const RunnerPace& pace = {});
  ~CoreRunner();
  CoreRunner(const CoreRunner&) = delete;
  CoreRunner& operator=(const CoreRunner&) = delete;

  void start();
  // A connection within the process, which takes part as `standing`. Its first message must be a
  // Hello.
  void admit(std::shared_ptr<Link> link, const std::string& peer, const Standing& standing);
  // A connection from the network: its first message decides.
  void receive(Arrival arrival);
  // Ends the sessions for which `verdict` has a refusal.
  void expel(const std::function<std::optional<Refusal>(const Standing&)>& verdict);

  // Keeps the key out from now on, of a volunteer of this name, and undoes what nobody audited.
  void ban(const KeyId& key, const std::string& name) { handle(Banned{key, name}); }

  void stop();

  // Ends the run: something around the core broke.
  void fail(Error error) { handle(TaskFailed{std::move(error)}); }

  [[nodiscard]] RunProgress progress() const { return core_.progress(); }

  // The run in full, with what the observer adds.
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
    std::shared_ptr<Link> link;  // null where it has a channel
    std::string peer;
    std::optional<KeyId> key;
    std::optional<Standing> standing;  // none until it is admitted, and the core knows of it
    std::optional<Channel> channel{};
    std::optional<RelayId> relay{};  // it is one
  };

  SessionId connect(Connection connection);
  void start(SessionId id);
  void arrived(SessionId id, Connection& connection, const Result<Message>& first);
  // Tells the peer why, and closes.
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
