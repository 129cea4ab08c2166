#include "master/core_runner.hpp"

#include <asio/post.hpp>
#include <chrono>
#include <new>
#include <utility>
#include <vector>

#include "schema/wire/codec.hpp"

namespace gleaner {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// A task for which the disk had no room is tried again this often.
constexpr std::chrono::seconds kStorageRetry{1};

}  // namespace

CoreRunner::CoreRunner(asio::io_context& io, MasterCore& core, Worker& worker, Persister& persister,
                       Observer observer)
    : io_(io),
      core_(core),
      worker_(worker),
      persister_(persister),
      observer_(std::move(observer)),
      timer_(io),
      storage_retry_(io) {}

CoreRunner::~CoreRunner() {
  alive_.reset();
  for (auto& [id, connection] : connections_) connection.link->abandon();
  worker_thread_.join();
  storage_thread_.join();
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
  timer_.expires_after(kTick);
  timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code error) {
    if (alive.expired() || error || is_done_) return;
    handle(Tick{});
    tick();
  });
}

SessionId CoreRunner::connect(Connection connection) {
  const SessionId id{++last_session_};
  connections_.emplace(id, std::move(connection));
  return id;
}

void CoreRunner::start(SessionId id) {
  const std::weak_ptr<int> alive = alive_;
  Link::Handler handler;
  handler.on_frame = [this, alive, id](const Bytes& payload, std::size_t wire_bytes) {
    if (!alive.expired()) received(id, payload, wire_bytes);
  };
  handler.on_closed = [this, alive, id](std::string reason) {
    if (!alive.expired()) closed(id, std::move(reason));
  };
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
  Effects effects = core_.handle(std::move(event), monotonic_now());
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
  const std::size_t wire_bytes =
      connection.link->send(encode(effect.message), lane_of(effect.message));
  core_.handle(MessageSent{effect.session, effect.message.index(), wire_bytes}, monotonic_now());
}

void CoreRunner::perform(const CloseSession& effect) {
  const auto found = connections_.find(effect.session);
  // Its on_closed takes it out of the map.
  if (found != connections_.end()) found->second.link->close();
}

void CoreRunner::perform(WorkerTask& task) {
  asio::post(worker_thread_, [this, alive = std::weak_ptr<int>(alive_), task = std::move(task)] {
    Event done = worker_.run(task);
    asio::post(io_, [this, alive, done = std::move(done)]() mutable {
      if (!alive.expired()) handle(std::move(done));
    });
  });
}

void CoreRunner::perform(StorageTask& task) {
  storage_queue_.push(std::move(task));
  do_storage();
}

void CoreRunner::do_storage() {
  if (is_storing_ || is_done_ || storage_queue_.empty()) return;
  is_storing_ = true;
  // The task stays where it is until it is done, and the destructor waits for the thread.
  asio::post(storage_thread_,
             [this, alive = std::weak_ptr<int>(alive_), &task = storage_queue_.next()] {
               std::optional<Event> done = persister_.run(task);
               asio::post(io_, [this, alive, done = std::move(done)]() mutable {
                 if (!alive.expired()) stored(std::move(done));
               });
             });
}

void CoreRunner::stored(std::optional<Event> done) {
  if (!done) {
    storage_queue_.stepped();
    is_storing_ = false;
    do_storage();
    return;
  }
  if (std::holds_alternative<StoreFull>(*done)) {
    handle(std::move(*done));
    storage_retry_.expires_after(kStorageRetry);
    storage_retry_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code error) {
      if (alive.expired() || error) return;
      is_storing_ = false;
      do_storage();
    });
    return;
  }
  is_storing_ = false;
  storage_queue_.done();
  do_storage();
  handle(std::move(*done));
}

void CoreRunner::perform(const Notice& effect) {
  if (observer_.on_notice) observer_.on_notice(effect);
}

void CoreRunner::perform(const Done& effect) {
  is_done_ = true;
  timer_.cancel();
  storage_retry_.cancel();
  if (observer_.on_done) observer_.on_done(effect);
}

}  // namespace gleaner
