#include "tests/sim/relay_process.hpp"

#include <utility>

#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"

namespace gleaner::sim {
namespace {

constexpr std::uint64_t kRelayStream = 1000;  // of draws: other streams stay as they are

}  // namespace

RelayProcess::RelayProcess(SimContext& context, MasterProcess& master, std::size_t index)
    : context_(context),
      master_(master),
      index_(index),
      name_("relay " + std::to_string(index)),
      random_(context.options.seed, Purpose::kSimulation, kRelayStream + index),
      network_(context.clock, random_, context.log, context.options.send_queue_bytes_max,
               context.options.relays.bytes_per_second) {}

void RelayProcess::start() {
  ++life_;
  context_.log.line(name_, "starts");
  Relay::Options options;
  options.hello = {kProtocolMin, kProtocolMax, kBuildVersion, name_, ""};
  options.dial = [this](const Relay::Dialled& on_dialled) { dial(on_dialled); };
  options.admit = [](const Arrival& arrival, const Hello&) { return *arrival.key; };
  options.on_log = [this](LogLevel, const std::string& text) { context_.log.line(name_, text); };
  options.on_exit = [](const Result<void>&) {};
  options.retry_first = Millis(20);
  options.retry_longest = Millis(1'000);
  options.tick = kTick;
  options.seed = context_.options.seed * 1000 + index_;
  relay_ = std::make_unique<Relay>(context_.clock, std::move(options));
  relay_->start();
  live();
}

void RelayProcess::live() {
  const Millis mean = context_.options.relays.life;
  if (mean.count() == 0) return;
  const Millis life(1 + random_.next_below(2 * static_cast<std::uint64_t>(mean.count())));
  context_.clock.after(life, [this, life = life_] {
    if (life != life_ || context_.clock.now() > Instant(context_.options.faults.until)) return;
    context_.log.mark("relay.killed");
    kill(random_.chance(1, 2));
  });
}

void RelayProcess::kill(bool is_told) {
  context_.log.line(name_, is_told ? "is killed" : "loses its power");
  const Relay::Counts counts = relay_->counts();
  if (counts.sums < counts.gradients) context_.log.mark("relay.summed");
  ++life_;
  if (last_link_) last_link_->abandon(is_told);
  last_link_.reset();
  for (const ConnectionId id : network_.attached(End::kMaster)) {
    network_.abandon(id, End::kMaster, is_told);
  }
  relay_.reset();
  const Millis pause(1 + random_.next_below(static_cast<std::uint64_t>(
                             context_.options.restart_after_most.count())));
  context_.clock.after(pause, [this, life = life_] {
    if (life == life_) start();
  });
}

Packet RelayProcess::pack(Bytes payload, Lane lane, const Lie& lie) {
  if (lie && random_.chance(1, 3)) {
    Message message = decode(payload).value();
    if (lie(message)) {
      ++*told_;
      payload = encode(message);
    }
  }
  return context_.pack(std::move(payload), lane);
}

ConnectionId RelayProcess::admit(std::size_t volunteer, const KeyId& key, Network::Hearing other) {
  const auto link = std::make_shared<SimLink>(
      network_, End::kMaster,
      [this](Bytes payload, Lane lane) { return pack(std::move(payload), lane, lie_.down); },
      [](const std::function<void()>& call) { call(); });
  const ConnectionId id = network_.open(volunteer, shape(), link->hearing(), std::move(other));
  link->join(id);
  relay_->receive({link, "lan:" + std::to_string(id), key});
  return id;
}

void RelayProcess::dial(const Relay::Dialled& on_dialled) {
  context_.clock.after(context_.options.link.latency_max, [this, life = life_, on_dialled] {
    if (life == life_) connect(on_dialled);
  });
}

void RelayProcess::connect(const Relay::Dialled& on_dialled) {
  if (!master_.is_running()) return on_dialled(Error{ErrorCode::kIo, "connection refused"});
  if (last_link_) last_link_->abandon();
  last_link_ = std::make_shared<SimLink>(
      context_.network, End::kVolunteer,
      [this](Bytes payload, Lane lane) { return pack(std::move(payload), lane, lie_.up); },
      [](const std::function<void()>& call) { call(); });
  last_link_->join(master_.receive(index_, context_.options.link, last_link_->hearing()));
  on_dialled(std::shared_ptr<Link>(last_link_));
}

}  // namespace gleaner::sim
