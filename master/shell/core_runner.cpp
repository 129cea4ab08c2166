#include "master/shell/core_runner.hpp"

#include <fmt/format.h>

#include <utility>

#include "schema/delivery.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner {

CoreRunner::CoreRunner(Clock& clock, MasterCore& core, WorkerThread& worker, StorageThread& storage,
                       Observer observer, const RunnerPace& pace)
    : clock_(clock),
      core_(core),
      worker_(worker),
      storage_(storage),
      observer_(std::move(observer)),
      pace_(pace) {}

CoreRunner::~CoreRunner() {
  lifetime_.end();
  for (auto& [id, connection] : connections_) {
    if (connection.link) connection.link->abandon();
  }
}

void CoreRunner::start() {
  handle(Tick{});
  tick();
}

void CoreRunner::stop() {
  handle(StopRequested{});
}

RunStatus CoreRunner::status() const {
  RunStatus status = core_.status();
  if (observer_.on_status) observer_.on_status(status, {{}, Role::kAdmin, true, true, {}});
  return status;
}

void CoreRunner::tick() {
  clock_.after(pace_.tick, lifetime_.guard([this] {
    if (is_done_) return;
    handle(Tick{});
    tick();
  }));
}

SessionId CoreRunner::connect(Connection connection) {
  const SessionId id{++last_session_};
  connections_.emplace(id, std::move(connection));
  return id;
}

void CoreRunner::start(SessionId id) {
  Link::Handler handler;
  handler.on_frame =
      lifetime_.guard<Bytes, std::size_t>([this, id](const Bytes& payload, std::size_t wire_bytes) {
        received(id, payload, wire_bytes);
      });
  handler.on_closed = lifetime_.guard<std::string>(
      [this, id](std::string reason) { closed(id, std::move(reason)); });
  connections_.at(id).link->start(std::move(handler));
}

void CoreRunner::admit(std::shared_ptr<Link> link, const std::string& peer,
                       const Standing& standing) {
  const SessionId id = connect({std::move(link), peer, std::nullopt, standing});
  handle(SessionOpened{id, peer, standing});
  start(id);
}

void CoreRunner::receive(Arrival arrival) {
  start(connect({std::move(arrival.link), std::move(arrival.peer), arrival.key, std::nullopt}));
}

void CoreRunner::received(SessionId id, const Bytes& payload, std::size_t wire_bytes) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  if (found->second.relay) return relay_said(*found->second.relay, payload, wire_bytes);
  Result<Message> message = decode(payload);
  if (!found->second.standing) {
    arrived(id, found->second, message);
    if (!found->second.standing || found->second.relay) return;
  }
  if (message) {
    handle(MessageReceived{id, std::move(*message), wire_bytes});
    return;
  }
  // Bytes that are no message end the session; the core only learns that it is gone.
  send_away(id, Refusal{message.error().code, message.error().message, false});
  handle(SessionClosed{id, "its message cannot be read: " + message.error().message});
}

void CoreRunner::arrived(SessionId id, Connection& connection, const Result<Message>& first) {
  std::variant<Standing, Message> verdict;
  if (first) {
    verdict = observer_.on_arrival(connection.key, connection.peer, *first);
  } else {
    verdict = Refusal{first.error().code, first.error().message, false};
  }
  if (const auto* standing = std::get_if<Standing>(&verdict)) {
    if (const auto* relay = std::get_if<RelayHello>(&*first)) {
      return admit_relay(id, *standing, *relay);
    }
    connection.standing = *standing;
    handle(SessionOpened{id, connection.peer, *standing});
    return;
  }
  Message& last = std::get<Message>(verdict);
  if (const auto* refusal = std::get_if<Refusal>(&last)) {
    perform(Notice(
        LogLine{LogLevel::kWarning, connection.peer + ": " + refusal->sentence, "turned_away"}));
  }
  send_away(id, std::move(last));
}

void CoreRunner::send_away(SessionId id, Message last) {
  Send send{id, std::move(last)};
  perform(send);
  perform(CloseSession{id});
}

void CoreRunner::expel(const std::function<std::optional<Refusal>(const Standing&)>& verdict) {
  std::vector<std::pair<SessionId, Refusal>> leaving;
  for (const auto& [id, connection] : connections_) {
    if (!connection.standing) continue;
    if (auto refusal = verdict(*connection.standing)) leaving.emplace_back(id, *refusal);
  }
  for (const auto& [id, refusal] : leaving) {
    send_away(id, refusal);
    handle(SessionClosed{id, refusal.sentence});
  }
}

void CoreRunner::closed(SessionId id, std::string reason) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::optional<Standing> standing = found->second.standing;
  const std::optional<RelayId> relay = found->second.relay;
  connections_.erase(found);
  if (relay) relay_closed(*relay, reason);
  if (!standing) return;
  if (observer_.on_gone && !standing->is_local) observer_.on_gone(*standing);
  handle(SessionClosed{id, std::move(reason)});
}

void CoreRunner::handle(Event event) {
  if (is_done_) return;
  if (observer_.on_event) observer_.on_event(event);
  Effects effects = core_.handle(std::move(event), clock_.now());
  if (observer_.on_effects) observer_.on_effects(effects);
  for (Effect& effect : effects) {
    std::visit([this](auto& e) { perform(e); }, effect);
  }
}

void CoreRunner::perform(Send& effect) {
  const auto found = connections_.find(effect.session);
  if (found == connections_.end()) return;
  const Connection& connection = found->second;
  RunStatus* const status = std::get_if<RunStatus>(&effect.message);
  if (status != nullptr && observer_.on_status && connection.standing) {
    observer_.on_status(*status, *connection.standing);
  }
  Goodbye* const goodbye = std::get_if<Goodbye>(&effect.message);
  if (goodbye != nullptr && connection.standing) {
    if (observer_.on_goodbye) {
      observer_.on_goodbye(*goodbye, *connection.standing);
    } else {
      goodbye->thanks.reset();
    }
  }
  const std::size_t type = effect.message.index();
  std::size_t wire_bytes = 0;
  if (!connection.channel) {
    wire_bytes = connection.link->send(encode(effect.message), lane_of(effect.message));
  } else if (const auto relay = relays_.find(connection.channel->relay); relay != relays_.end()) {
    wire_bytes = relay->second.send(connection.channel->number, std::move(effect.message));
  }
  core_.handle(MessageSent{effect.session, type, wire_bytes}, clock_.now());
}

void CoreRunner::perform(const CloseSession& effect) {
  const auto found = connections_.find(effect.session);
  if (found == connections_.end()) return;
  if (found->second.channel) {
    close_channel(*found->second.channel, "closed");
  } else {
    found->second.link->close();  // its on_closed takes it out of the map
  }
}

void CoreRunner::perform(WorkerTask& task) {
  worker_.run(std::move(task),
              lifetime_.guard<Event>([this](Event done) { handle(std::move(done)); }));
}

void CoreRunner::perform(StorageTask& task) {
  storage_queue_.push(std::move(task));
  do_storage();
}

void CoreRunner::do_storage() {
  if (is_storing_ || is_done_ || storage_queue_.empty()) return;
  is_storing_ = true;
  storage_.run(storage_queue_.next(), lifetime_.guard<std::optional<Event>>(
                                          [this](auto done) { stored(std::move(done)); }));
}

void CoreRunner::stored(std::optional<Event> done) {
  if (done && std::holds_alternative<StoreFull>(*done)) {
    handle(std::move(*done));
    clock_.after(pace_.storage_retry, lifetime_.guard([this] {
      is_storing_ = false;
      do_storage();
    }));
    return;
  }
  is_storing_ = false;
  if (done) {
    storage_queue_.done();
  } else {
    storage_queue_.stepped();
  }
  do_storage();
  if (done) handle(std::move(*done));
}

void CoreRunner::perform(const Notice& effect) {
  if (observer_.on_notice) observer_.on_notice(effect);
}

void CoreRunner::perform(const Done& effect) {
  is_done_ = true;
  for (auto& [id, relay] : relays_) {
    relay.send(Goodbye{
        effect.outcome == Outcome::kFinished ? ErrorCode::kFinished : ErrorCode::kShuttingDown,
        "the run has ended"});
    relay.link().close();
  }
  if (observer_.on_done) observer_.on_done(effect);
}

// ---- Relays ------------------------------------------------------------------------------------

void CoreRunner::admit_relay(SessionId id, const Standing& standing, const RelayHello& hello) {
  Connection& connection = connections_.at(id);
  const RelayId relay{++last_relay_};
  connection.standing = standing;
  connection.relay = relay;
  perform(
      Notice(LogLine{LogLevel::kInfo,
                     fmt::format("relay {} ({}) has come", hello.name, connection.peer), "relay"}));
  const auto end = relays_.try_emplace(relay, connection.link, hello.name, standing).first;
  end->second.send(Heartbeat{});
}

void CoreRunner::relay_said(RelayId id, const Bytes& payload, std::size_t wire_bytes) {
  const auto found = relays_.find(id);
  if (found == relays_.end()) return;
  Result<Message> message = decode(payload);
  RelayEnd& relay = found->second;
  const Result<void> heard =
      message ? deliver<route::kRelayUp>(
                    *message, [&](auto& one) { return hear(id, relay, one, wire_bytes); })
              : Result<void>(message.error());
  if (heard) return;
  found->second.send(Refusal{heard.error().code, heard.error().message, true});
  found->second.link().close();
}

void CoreRunner::hear(RelayId, RelayEnd& relay, const RelayFrame& frame, std::size_t wire_bytes) {
  if (const auto session = relay.session_at(frame.channel)) {
    received(*session, frame.payload, wire_bytes);
  }
}

Result<void> CoreRunner::hear(RelayId id, RelayEnd& relay, RelaySum& sum, std::size_t wire_bytes) {
  std::optional<RelaySummed> event = relay.summed(id, sum, wire_bytes);
  if (!event) return protocol_error("a sum of a channel that never was");
  handle(std::move(*event));
  return {};
}

void CoreRunner::hear(RelayId, RelayEnd& relay, const RelayClose& close, std::size_t) {
  const auto session = relay.session_at(close.channel);
  relay.close(close.channel);
  if (session) closed(*session, close.reason);
}

void CoreRunner::hear(RelayId, RelayEnd& relay, const Heartbeat&, std::size_t) {
  relay.send(Heartbeat{});
}

void CoreRunner::hear(RelayId id, RelayEnd& relay, const RelayOpen& open, std::size_t) {
  std::variant<Standing, Message> verdict = relay.standing();
  if (observer_.on_relayed) verdict = observer_.on_relayed(relay.standing(), open.key);
  if (auto* last = std::get_if<Message>(&verdict)) {
    relay.send(open.channel, std::move(*last));
    relay.send(RelayClose{open.channel, "refused"});
    return;
  }
  const SessionId session{last_session_ + 1};
  if (!relay.open(open.channel, session)) return;  // the number was used before
  connect(
      {nullptr, relay.address_of(open.peer), open.key, std::nullopt, Channel{id, open.channel}});
  Connection& connection = connections_.at(session);
  connection.standing = std::get<Standing>(verdict);
  handle(SessionOpened{session, connection.peer, *connection.standing, id});
}

void CoreRunner::close_channel(const Channel& channel, std::string reason) {
  const auto relay = relays_.find(channel.relay);
  if (relay == relays_.end()) return;
  const auto session = relay->second.session_at(channel.number);
  if (!session) return;
  relay->second.send(RelayClose{channel.number, reason});
  relay->second.close(channel.number);
  // Later, as a link does, and not within this call.
  clock_.after(Micros(0), lifetime_.guard([this, id = *session, reason = std::move(reason)] {
    closed(id, reason);
  }));
}

void CoreRunner::relay_closed(RelayId id, const std::string& reason) {
  const auto found = relays_.find(id);
  if (found == relays_.end()) return;
  const std::string why = "relay " + found->second.name() + ": " + reason;
  for (const SessionId session : found->second.sessions()) closed(session, why);
  relays_.erase(found);
  perform(Notice(LogLine{LogLevel::kInfo, why, "relay"}));
  handle(RelayGone{id});
}

void CoreRunner::perform(const SplitSum& effect) {
  const auto relay = relays_.find(effect.relay);
  if (relay != relays_.end()) relay->second.send(RelaySplit{effect.number});
}

void CoreRunner::perform(const CloseRelay& effect) {
  const auto relay = relays_.find(effect.relay);
  if (relay == relays_.end()) return;
  relay->second.send(Refusal{ErrorCode::kProtocol, effect.reason, true});
  relay->second.link().close();
  // A connection that has broken unnoticed may take long to close.
  clock_.after(Micros(0), lifetime_.guard([this, id = effect.relay, reason = effect.reason] {
    relay_closed(id, reason);
  }));
}

}  // namespace gleaner
