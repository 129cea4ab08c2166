#include "tests/sim/volunteer_process.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/model/run_plan.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"
#include "tests/sim/describe.hpp"

namespace gleaner::sim {
namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;
// How soon it is seen that what was to be sent has left.
constexpr Millis kSendPoll{1};
// A connection on which nothing leaves meanwhile has broken: what the deadline of a write is to a
// socket.
constexpr Millis kWriteDeadline{3'000};

}  // namespace

VolunteerProcess::VolunteerProcess(SimContext& context, MasterProcess& master, std::size_t index,
                                   const Standing& standing, std::uint64_t slowness)
    : context_(context),
      master_(master),
      index_(index),
      standing_(standing),
      slowness_(slowness),
      name_(standing.is_local ? "referee" : "v" + std::to_string(index + 1)),
      link_(context.options.link) {
  if (context.options.has_steady_latency) {
    link_.latency_min = link_.latency_max = context.network.latency(link_);
  }
}

void VolunteerProcess::start() {
  if (is_removed_) return;
  ++life_;
  volunteer::CoreConfig config = context_.options.volunteer;
  config.master = "master";
  config.hello.protocol_min = kProtocolMin;
  config.hello.protocol_max = kProtocolMax;
  config.hello.name = name_;
  config.hello.cores = 1;
  config.hello.memory_bytes = kMemoryBytes;
  config.hello.simd = "scalar";
  config.hello.speed = 1;
  config.hello.process = std::uint64_t{life_} << 32 | index_;
  config.seed = context_.options.seed * 1000 + index_;
  core_ = std::make_unique<volunteer::VolunteerCore>(config);
  const bool is_starved = context_.clock.now() < starved_until_;
  tasks_ = context_.workload.start_volunteer(is_starved ? 1 : kMemoryBytes);
  frozen_until_ = work_free_ = context_.clock.now();
  while_frozen_.clear();
  next_work_.reset();
  unheard_.clear();
  connection_ = 0;
  context_.log.line(name_, "starts");
  handle(life_, volunteer::Started{});
  tick(life_);
}

void VolunteerProcess::end(bool is_told) {
  ++life_;
  core_.reset();
  tasks_.reset();
  if (connection_ != 0) context_.network.abandon(connection_, End::kVolunteer, is_told);
  connection_ = 0;
}

void VolunteerProcess::start_later() {
  context_.clock.after(context_.uniform(Millis(1), context_.options.restart_after_most),
                       [this, life = life_] {
                         if (life == life_ && !is_running()) start();
                       });
}

void VolunteerProcess::kill(bool is_told) {
  if (!is_running()) return;
  context_.log.line(name_, is_told ? "is killed" : "loses its power");
  end(is_told);
  start_later();
}

void VolunteerProcess::remove(bool is_told) {
  is_removed_ = true;
  if (is_running()) end(is_told);
}

void VolunteerProcess::bring_back() {
  is_removed_ = false;
  if (!is_running()) start();
}

void VolunteerProcess::tell(const Lie& lie, std::function<void(std::optional<RoundIndex>)> on_lie,
                            std::function<void()> on_sent_away) {
  lie_ = lie;
  on_lie_ = std::move(on_lie);
  on_sent_away_ = std::move(on_sent_away);
}

namespace {

std::optional<RoundIndex> round_of(const Message& message, const RunPlan& plan) {
  if (const auto* commit = std::get_if<ShardCommit>(&message)) return commit->round;
  const auto* result = std::get_if<UnitResult>(&message);
  if (result == nullptr || result->batches.empty()) return std::nullopt;
  return plan.round_of(result->batches.front().batch);
}

}  // namespace

void VolunteerProcess::falsify(Message& message) {
  const Strangers& strangers = context_.options.strangers;
  const auto round = round_of(message, RunPlan(context_.options.model));
  if (strangers.rounds < 1) {
    // The same rounds whenever they are trained.
    constexpr std::uint64_t kParts = 1'000'000;
    if (!round) return;
    Rng random(context_.options.seed, Purpose::kSimulation, ((index_ + 1) << 32) | *round);
    if (random.next_below(kParts) >= static_cast<std::uint64_t>(strangers.rounds * kParts)) return;
  }
  if (!context_.random.chance(1, strangers.one_in) || !lie_(message)) return;
  context_.log.line(name_, "lies: " + describe(message));
  on_lie_(round);
}

void VolunteerProcess::ask_to_stop() {
  if (is_running()) handle(life_, volunteer::StopRequested{"stopped by the test"});
}

void VolunteerProcess::freeze(Instant until) {
  context_.log.line(name_, "freezes");
  frozen_until_ = std::max(frozen_until_, until);
  context_.clock.at(frozen_until_, [this, life = life_] { thaw(life); });
}

void VolunteerProcess::thaw(std::uint64_t life) {
  if (life != life_ || context_.clock.now() < frozen_until_) return;
  // What came meanwhile comes now, in its order.
  std::deque<volunteer::Event> events = std::exchange(while_frozen_, {});
  for (volunteer::Event& event : events) handle(life, std::move(event));
}

void VolunteerProcess::slow(Instant until, std::int64_t factor) {
  context_.log.line(name_, "becomes slow");
  slow_until_ = until;
  slow_factor_ = factor;
}

void VolunteerProcess::restart_without_memory(Instant until) {
  starved_until_ = std::max(starved_until_, until);
  kill(true);
  context_.clock.at(starved_until_, [this] {
    if (context_.clock.now() >= starved_until_) kill(true);
  });
}

void VolunteerProcess::tick(std::uint64_t life) {
  if (life != life_) return;
  handle(life, volunteer::Tick{});
  context_.clock.after(kTick, [this, life] { tick(life); });
}

// ---- Events and effects ------------------------------------------------------------------------

void VolunteerProcess::handle(std::uint64_t life, volunteer::Event event) {
  if (life != life_ || !is_running()) return;
  if (context_.clock.now() < frozen_until_) {
    while_frozen_.push_back(std::move(event));
    return;
  }
  context_.clock.note(event.index() + 100);
  volunteer::Effects effects = core_->handle(std::move(event), context_.clock.now());
  const std::size_t waiting = core_->work_waiting();
  context_.tell_checkers([&](Checker& c) { c.work_waiting(waiting); });
  for (volunteer::Effect& effect : effects) {
    if (life != life_) return;
    if (context_.log.is_traced()) {
      if (const std::string text = describe(effect); !text.empty()) context_.log.line(name_, text);
    }
    std::visit([this](auto& e) { perform(e); }, effect);
  }
  if (life == life_ && is_running()) listen_again();
}

void VolunteerProcess::listen_again() {
  if (unheard_.empty() || !core_->wants_more()) return;
  std::optional<Packet> first = std::move(unheard_.front());
  unheard_.pop_front();
  // One after the other: each may make the core want no more.
  if (first) {
    received(life_, *first);
  } else {
    disconnected();
  }
}

void VolunteerProcess::disconnected() {
  connection_ = 0;
  handle(life_, volunteer::Disconnected{"the connection broke"});
}

void VolunteerProcess::perform(volunteer::Connect&) {
  const Instant reachable = std::max(context_.clock.now() + context_.network.latency(link_),
                                     context_.network.stalled_until(index_));
  context_.clock.at(reachable, [this, life = life_] { connect(life); });
}

void VolunteerProcess::connect(std::uint64_t life) {
  if (life != life_) return;
  if (!master_.is_running()) {
    handle(life, volunteer::ConnectFailed{"connection refused"});
    return;
  }
  if (connection_ != 0) context_.network.abandon(connection_, End::kVolunteer, true);
  Network::Hearing hearing;
  // A connection that has been given up must not be heard any more.
  const auto own = std::make_shared<ConnectionId>();
  hearing.on_packet = [this, life, own](Packet packet) {
    if (life != life_ || connection_ != *own) return;
    if (unheard_.empty() && core_->wants_more()) return received(life, packet);
    context_.log.mark("branch.not_listening");
    unheard_.emplace_back(std::move(packet));
  };
  hearing.on_closed = [this, life, own] {
    if (life != life_ || connection_ != *own) return;
    if (unheard_.empty()) return disconnected();
    unheard_.emplace_back(std::nullopt);
  };
  unheard_.clear();
  connection_ = *own = master_.admit(index_, standing_, link_, std::move(hearing));
  handle(life, volunteer::Connected{});
}

void VolunteerProcess::received(std::uint64_t life, const Packet& packet) {
  auto message = decode(packet.bytes);
  if (!message) {
    context_.log.violation("a message does not decode: " + message.error().message);
    return;
  }
  if (context_.log.is_traced() && !std::holds_alternative<Heartbeat>(*message)) {
    context_.log.line(name_, "<- " + describe(*message));
  }
  handle(life, volunteer::MessageReceived{std::move(*message), packet.wire_bytes});
}

void VolunteerProcess::perform(volunteer::Disconnect&) {
  if (connection_ != 0) context_.network.close(connection_, End::kVolunteer);
}

void VolunteerProcess::perform(volunteer::Send& effect) {
  if (connection_ == 0) return;
  if (lie_) falsify(effect.message);
  Bytes payload = encode(effect.message);
  const std::size_t wire_bytes = context_.workload.wire_bytes(payload);
  context_.network.send(connection_, End::kVolunteer,
                        {std::move(payload), wire_bytes, lane_of(effect.message)});
}

void VolunteerProcess::perform(volunteer::StartWork& effect) {
  next_work_ = std::move(effect);
  waiting_bytes_ = std::numeric_limits<std::size_t>::max();
  start_work();
}

void VolunteerProcess::start_work() {
  if (!next_work_) return;
  const std::size_t waiting =
      connection_ == 0 ? 0 : context_.network.queued_bytes(connection_, End::kVolunteer);
  if (waiting > context_.options.volunteer_queue_bytes_max) {
    context_.log.mark("branch.work_waits_for_the_link");
    context_.clock.after(kSendPoll, [this, life = life_] {
      if (life == life_) start_work();
    });
    if (waiting < waiting_bytes_) waiting_since_ = context_.clock.now();
    waiting_bytes_ = waiting;
    if (context_.clock.now() - waiting_since_ >= kWriteDeadline) {
      context_.log.mark("branch.write_deadline");
      context_.network.abandon(connection_, End::kVolunteer, false);
      unheard_.clear();
      disconnected();
    }
    return;
  }
  volunteer::StartWork effect = std::move(*next_work_);
  next_work_.reset();
  Micros cost = tasks_->cost(effect.work) * static_cast<std::int64_t>(slowness_);
  if (context_.clock.now() < slow_until_) cost *= slow_factor_;
  work_free_ = std::max(work_free_, context_.clock.now()) + cost;
  context_.clock.at(work_free_, [this, life = life_, cost, effect = std::move(effect)] {
    if (life != life_) return;
    auto replies = tasks_->execute(effect.work);
    volunteer::WorkDone done{effect.generation, {}, {}};
    if (replies) {
      done.replies = std::move(*replies);
      for (Message& reply : done.replies) {
        // The time that the work took in the simulation, not on this machine.
        if (auto* result = std::get_if<UnitResult>(&reply)) {
          result->compute_us = static_cast<std::uint64_t>(cost.count());
        }
      }
    } else {
      done.error = replies.error();
      const bool is_expected =
          replies.error().code == ErrorCode::kResources && starved_until_ > Instant{};
      context_.log.mark("branch.work_failed_for_memory");
      if (!is_expected) context_.log.violation("work failed: " + replies.error().message);
    }
    handle(life, std::move(done));
  });
}

void VolunteerProcess::perform(volunteer::Exit& effect) {
  context_.log.mark(effect.success ? "exit.success" : "exit.failure");
  const bool is_sent_away = !effect.success && effect.error.code != ErrorCode::kIdentity;
  if (is_sent_away && context_.options.strangers.are_there) {
    if (!lie_) context_.log.violation(name_ + ", which is honest, ends: " + effect.error.message);
    if (lie_) on_sent_away_();
    is_removed_ = true;
  }
  end(true);
  start_later();
}

}  // namespace gleaner::sim
