#include "volunteer/client.hpp"

#include <utility>

#include "schema/wire/codec.hpp"

namespace gleaner::volunteer {

namespace {

template <typename Done>
Done done_of(std::uint64_t generation, Worked& worked) {
  if (!worked.replies) return {generation, {}, worked.replies.error()};
  return {generation, std::move(*worked.replies), {}};
}

}  // namespace

Client::Client(Clock& clock, WorkThread& work, PauseGate& gate, Options options, Lanes* lanes)
    : clock_(clock),
      work_(work),
      gate_(gate),
      options_(std::move(options)),
      lanes_(lanes),
      core_(options_.core) {}

Client::~Client() {
  lifetime_.end();
  if (link_) link_->abandon();
}

void Client::start() {
  if (lanes_ != nullptr) {
    lanes_->start(
        lifetime_.guard<std::uint64_t, Worked>([this](std::uint64_t generation, Worked worked) {
          held_bytes_ = worked.held_bytes;
          handle(done_of<LaneDone>(generation, worked));
        }));
  }
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
  clock_.after(options_.tick, lifetime_.guard([this] {
    if (has_exited_) return;
    handle(Tick{});
    tick();
  }));
}

void Client::handle(Event event) {
  if (has_exited_) return;
  if (options_.on_event) options_.on_event(event);
  Effects effects = core_.handle(std::move(event), clock_.now());
  if (options_.on_effects) options_.on_effects(core_, effects);
  for (Effect& effect : effects) {
    std::visit([this](auto& e) { perform(e); }, effect);
  }
  if (link_) link_->set_listening(core_.wants_more());
  if (core_.may_compute()) {
    gate_.open();
  } else {
    gate_.close();
  }
  steer_lanes();
  if (options_.on_change) options_.on_change(core_.snapshot(), held_bytes_);
}

void Client::perform(const Connect&) {
  const std::uint64_t connection = ++connection_;
  options_.dial(lifetime_.guard<Result<std::shared_ptr<Link>>>(
      [this, connection](const Result<std::shared_ptr<Link>>& dialled) {
        if (has_exited_ || connection != connection_) {
          if (dialled) (*dialled)->abandon();
        } else if (dialled) {
          use(*dialled);
          handle(Connected{});
        } else {
          handle(ConnectFailed{dialled.error().message});
        }
      }));
}

void Client::use(std::shared_ptr<Link> link) {
  link_ = std::move(link);
  start_work();
  const auto is_current = [this, connection = connection_] {
    return !has_exited_ && connection == connection_;
  };
  Link::Handler handler;
  handler.on_frame = lifetime_.guard<Bytes, std::size_t>(
      [this, is_current](const Bytes& payload, std::size_t wire_bytes) {
        if (!is_current()) return;
        traffic_.down_bytes += wire_bytes;
        receive(payload, wire_bytes);
      });
  handler.on_closed = lifetime_.guard<std::string>([this, is_current](std::string reason) {
    if (!is_current()) return;
    hang_up();
    handle(Disconnected{std::move(reason)});
  });
  handler.on_sent = lifetime_.guard([this, is_current] {
    if (!is_current()) return;
    start_work();
    steer_lanes();
  });
  link_->start(std::move(handler));
}

void Client::receive(const Bytes& payload, std::size_t wire_bytes) {
  Result<Message> message = decode(payload);
  if (!message && message.error().code == ErrorCode::kResources) {
    // Nothing has changed yet. The core's answer to Disconnected gives up the shards.
    hang_up();
    handle(Disconnected{
        "this machine has less memory than --memory promises: there is none for what the master "
        "sent, and half as much is offered from now on",
        true});
  } else if (!message) {
    hang_up();
    handle(Disconnected{"the master sent nonsense: " + message.error().message});
  } else {
    handle(MessageReceived{std::move(*message), wire_bytes});
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
  auto* const hello = std::get_if<Hello>(&effect.message);
  if (hello != nullptr && options_.on_hello) options_.on_hello(*hello);
  if (link_) traffic_.up_bytes += link_->send(encode(effect.message), lane_of(effect.message));
}

void Client::perform(StartWork& effect) {
  next_work_ = std::move(effect);
  start_work();
}

bool Client::is_link_busy() const {
  return link_ && link_->bytes_waiting() > options_.send_queue_bytes;
}

void Client::steer_lanes() {
  if (lanes_ != nullptr) lanes_->let_begin(core_.may_begin_units() && !is_link_busy());
}

void Client::start_work() {
  if (!next_work_ || is_link_busy()) return;
  is_working_ = true;
  StartWork next = *std::exchange(next_work_, std::nullopt);
  work_.run(std::move(next.work),
            lifetime_.guard<Worked>([this, generation = next.generation](Worked worked) {
              held_bytes_ = worked.held_bytes;
              is_working_ = false;
              handle(done_of<WorkDone>(generation, worked));
            }));
}

void Client::perform(Exit& effect) {
  has_exited_ = true;
  if (link_) link_->close();
  if (options_.on_exit) options_.on_exit(effect);
}

}  // namespace gleaner::volunteer
