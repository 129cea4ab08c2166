#include "volunteer/client.hpp"

#include <asio/post.hpp>
#include <chrono>
#include <new>
#include <optional>
#include <utility>

#include "schema/wire/codec.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::chrono::milliseconds kTick{100};
// While this much waits to be sent, no work is begun whose results would have to wait as well.
constexpr std::size_t kSendQueueBytes = std::size_t{32} << 20;

}  // namespace

Client::Client(asio::io_context& io, Options options)
    : io_(io),
      options_(std::move(options)),
      core_(options_.core),
      pool_(options_.threads, options_.nice, options_.pins_threads),
      executor_(pool_, options_.memory_bytes, options_.points),
      timer_(io) {
  asio::post(work_, [nice = options_.nice, is_pinned = options_.pins_threads] {
    give_way(nice);
    if (is_pinned) pin_to_processor(0);
  });
}

Client::~Client() {
  alive_.reset();
  if (link_) link_->abandon();
  pool_.gate().open();
  work_.join();
}

void Client::start() {
  handle(Started{});
  tick();
}

void Client::stop(std::string reason, std::optional<Millis> grace) {
  handle(StopRequested{std::move(reason), grace});
}

void Client::pause(std::string reason, Millis keep, Millis grace) {
  handle(PauseRequested{std::move(reason), keep, grace});
}

void Client::resume() {
  handle(ResumeRequested{});
}

void Client::tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this, alive = std::weak_ptr<int>(alive_)](asio::error_code error) {
    if (alive.expired() || error || has_exited_) return;
    handle(Tick{});
    tick();
  });
}

void Client::handle(Event event) {
  if (has_exited_) return;
  Effects effects = core_.handle(std::move(event), monotonic_now());
  for (Effect& effect : effects) {
    std::visit([this](auto& e) { perform(e); }, effect);
  }
  if (link_) link_->set_listening(core_.wants_more());
  if (core_.may_compute()) {
    pool_.gate().open();
  } else {
    pool_.gate().close();
  }
  if (options_.on_change) options_.on_change(core_.snapshot(), held_bytes_);
}

void Client::perform(const Connect&) {
  const std::uint64_t connection = ++connection_;
  options_.dial([this, connection,
                 alive = std::weak_ptr<int>(alive_)](Result<std::shared_ptr<Link>> dialled) {
    if (alive.expired() || has_exited_ || connection != connection_) {
      if (dialled) (*dialled)->abandon();
      return;
    }
    if (dialled) {
      use(*dialled);
      handle(Connected{});
    } else {
      handle(ConnectFailed{dialled.error().message});
    }
  });
}

void Client::use(std::shared_ptr<Link> link) {
  link_ = std::move(link);
  start_work();
  const std::uint64_t connection = connection_;
  const auto is_current = [this, connection, alive = std::weak_ptr<int>(alive_)] {
    return !alive.expired() && !has_exited_ && connection == connection_;
  };
  Link::Handler handler;
  handler.on_frame = [this, is_current](const Bytes& payload, std::size_t wire_bytes) {
    if (!is_current()) return;
    traffic_.down_bytes += wire_bytes;
    receive(payload, wire_bytes);
  };
  handler.on_closed = [this, is_current](std::string reason) {
    if (!is_current()) return;
    hang_up();
    handle(Disconnected{std::move(reason)});
  };
  handler.on_sent = [this, is_current] {
    if (is_current()) start_work();
  };
  link_->start(std::move(handler));
}

void Client::receive(const Bytes& payload, std::size_t wire_bytes) {
  std::optional<Result<Message>> message;
  try {
    message = decode(payload);
  } catch (const std::bad_alloc&) {
    // Nothing has been changed yet; what is reported below lets go of the shards.
  }
  if (!message) {
    hang_up();
    handle(Disconnected{
        "this machine has less memory than --memory promises: there is none for what the master "
        "sent, and half as much is offered from now on",
        true});
  } else if (!*message) {
    hang_up();
    handle(Disconnected{"the master sent nonsense: " + message->error().message});
  } else {
    handle(MessageReceived{std::move(**message), wire_bytes});
  }
}

void Client::hang_up() {
  ++connection_;
  if (link_) link_->abandon();
  link_.reset();
  start_work();
}

void Client::perform(const Disconnect&) {
  if (link_) link_->close();  // its on_closed brings Disconnected
}

void Client::perform(Send& effect) {
  if (link_) traffic_.up_bytes += link_->send(encode(effect.message), lane_of(effect.message));
}

void Client::perform(StartWork& effect) {
  next_work_ = std::move(effect);
  start_work();
}

void Client::start_work() {
  if (!next_work_ || (link_ && link_->bytes_waiting() > kSendQueueBytes)) return;
  is_working_ = true;
  asio::post(work_, [this, alive = std::weak_ptr<int>(alive_),
                     effect = std::move(*std::exchange(next_work_, std::nullopt))] {
    auto replies = executor_.execute(effect.work);
    WorkDone done{effect.generation, {}, {}};
    if (replies) {
      done.replies = std::move(*replies);
    } else {
      done.error = replies.error();
    }
    asio::post(io_, [this, alive, done = std::move(done), held = executor_.held_bytes()]() mutable {
      if (alive.expired()) return;
      held_bytes_ = held;
      is_working_ = false;
      handle(std::move(done));
    });
  });
}

void Client::perform(Exit& effect) {
  has_exited_ = true;
  timer_.cancel();
  if (link_) link_->close();
  if (options_.on_exit) options_.on_exit(effect);
}

}  // namespace gleaner::volunteer
