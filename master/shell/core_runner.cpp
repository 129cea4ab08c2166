#include "master/shell/core_runner.hpp"

#include <new>
#include <utility>
#include <vector>

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
  for (auto& [id, connection] : connections_) connection.link->abandon();
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
  Result<Message> message = Error{ErrorCode::kResources, "there is no memory for it"};
  try {
    message = decode(payload);
  } catch (const std::bad_alloc&) {
    // Nothing has been changed yet: only this session ends.
  }
  if (!found->second.standing) {
    arrived(id, found->second, message);
    if (!found->second.standing) return;
  }
  if (message) {
    handle(MessageReceived{id, std::move(*message), wire_bytes});
    return;
  }
  // Bytes that make no sense end the session; the core only learns that it is gone.
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
  connections_.erase(found);
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
  const std::size_t wire_bytes =
      connection.link->send(encode(effect.message), lane_of(effect.message));
  core_.handle(MessageSent{effect.session, effect.message.index(), wire_bytes}, clock_.now());
}

void CoreRunner::perform(const CloseSession& effect) {
  const auto found = connections_.find(effect.session);
  // Its on_closed takes it out of the map.
  if (found != connections_.end()) found->second.link->close();
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
  if (observer_.on_done) observer_.on_done(effect);
}

}  // namespace gleaner
