#include "tests/sim/volunteer_process.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/model/run_plan.hpp"
#include "schema/versions.hpp"
#include "schema/wire/codec.hpp"
#include "tests/sim/commit_parts.hpp"
#include "tests/sim/describe.hpp"

namespace gleaner::sim {
namespace {

constexpr std::uint64_t kMemoryBytes = std::uint64_t{1} << 30;

std::optional<RoundIndex> round_of(const Message& message, const RunPlan& plan) {
  if (const auto* commit = std::get_if<ShardCommit>(&message)) return commit->round;
  const auto* result = std::get_if<UnitResult>(&message);
  if (result == nullptr || result->batches.empty()) return std::nullopt;
  return plan.round_of(result->batches.front().batch);
}

}  // namespace

VolunteerProcess::VolunteerProcess(SimContext& context, MasterProcess& master, std::size_t index,
                                   const Standing& standing, std::uint64_t slowness)
    : context_(context),
      master_(master),
      index_(index),
      standing_(standing),
      slowness_(slowness),
      name_(standing.is_local ? "referee" : "v" + std::to_string(index + 1)),
      shape_(context.options.link) {
  if (context.options.has_steady_latency) {
    shape_.latency_min = shape_.latency_max = context.network.latency(shape_);
  }
}

void VolunteerProcess::start() {
  if (is_removed_) return;
  ++life_;
  const bool is_starved = context_.clock.now() < starved_until_;
  tasks_ = context_.workload.start_volunteer(is_starved ? 1 : kMemoryBytes);
  frozen_until_ = work_free_ = context_.clock.now();
  context_.log.line(name_, "starts");
  client_ = std::make_unique<volunteer::Client>(*this, *this, gate_, options());
  client_->start();
}

volunteer::Client::Options VolunteerProcess::options() {
  volunteer::Client::Options options;
  options.core = context_.options.volunteer;
  options.core.master = "master";
  options.core.hello.protocol_min = kProtocolMin;
  options.core.hello.protocol_max = kProtocolMax;
  options.core.hello.name = name_;
  options.core.hello.cores = 1;
  options.core.hello.memory_bytes = kMemoryBytes;
  options.core.hello.simd = "scalar";
  options.core.hello.speed = 1;
  options.core.hello.process = std::uint64_t{life_} << 32 | index_;
  options.core.seed = context_.options.seed * 1000 + index_;
  options.tick = kTick;
  options.send_queue_bytes = context_.options.volunteer_queue_bytes_max;
  options.dial = [this](Dialled on_dialled) { dial(std::move(on_dialled)); };
  options.on_exit = [this, life = life_](const volunteer::Exit& exit) {
    context_.clock.after(Micros(0), [this, life, exit] {
      if (life == life_) conclude(exit);
    });
  };
  options.on_event = [this](const volunteer::Event& event) { saw(event); };
  options.on_effects = [this](const volunteer::VolunteerCore& core,
                              const volunteer::Effects& effects) { saw(core, effects); };
  return options;
}

void VolunteerProcess::end(bool is_told) {
  ++life_;
  if (last_link_) last_link_->abandon(is_told);
  last_link_.reset();
  while_frozen_.clear();
  client_.reset();
  tasks_.reset();
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

void VolunteerProcess::falsify(Message& message) {
  const Strangers& strangers = context_.options.strangers;
  const auto round = round_of(message, RunPlan(context_.options.model));
  if (strangers.rounds < 1) {
    // Picks the same rounds whenever they are trained.
    constexpr std::uint64_t kParts = 1'000'000;
    if (!round) return;
    Rng random(context_.options.seed, Purpose::kSimulation, ((index_ + 1) << 32) | *round);
    if (random.next_below(kParts) >= static_cast<std::uint64_t>(strangers.rounds * kParts)) return;
  }
  if (!context_.random.chance(1, strangers.one_in) || !lie_(message)) return;
  context_.log.line(name_, "lies: " + describe(message));
  on_lie_(round);
}

bool VolunteerProcess::withholds(Message& message) {
  const Strangers& strangers = context_.options.strangers;
  if (withholder_ == nullptr || now() < Instant(strangers.withholds_from) ||
      !strangers.withholds(message)) {
    return false;
  }
  context_.log.line(name_, "withholds " + describe(message));
  withholder_->withheld.push_back(now());
  return true;
}

void VolunteerProcess::ask_to_stop() {
  if (is_running()) pass([this] { client_->stop("stopped by the test"); });
}

void VolunteerProcess::freeze(Instant until) {
  context_.log.line(name_, "freezes");
  frozen_until_ = std::max(frozen_until_, until);
  context_.clock.at(frozen_until_, [this, life = life_] { thaw(life); });
}

void VolunteerProcess::thaw(std::uint64_t life) {
  if (life != life_ || context_.clock.now() < frozen_until_) return;
  // Calls that came meanwhile come now, in their order.
  for (auto& call : std::exchange(while_frozen_, {})) {
    if (life == life_) pass(std::move(call));
  }
}

void VolunteerProcess::pass(std::function<void()> call) {
  if (context_.clock.now() < frozen_until_) {
    while_frozen_.push_back(std::move(call));
  } else {
    call();
  }
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

// ---- What the client stands on -----------------------------------------------------------------

void VolunteerProcess::after(Micros delay, std::function<void()> call) {
  context_.clock.after(delay, [this, call = std::move(call)] { pass(call); });
}

void VolunteerProcess::run(volunteer::Work work, std::function<void(volunteer::Worked)> done) {
  Micros cost = tasks_->cost(work) * static_cast<std::int64_t>(slowness_);
  if (context_.clock.now() < slow_until_) cost *= slow_factor_;
  work_free_ = std::max(work_free_, context_.clock.now()) + cost;
  context_.clock.at(work_free_, [this, life = life_, cost, work = std::move(work),
                                 done = std::move(done)] {
    if (life != life_) return;
    volunteer::Worked worked{tasks_->execute(work)};
    if (worked.replies) {
      *worked.replies = cut_commits(std::move(*worked.replies), context_.options.commit_part_rows);
      for (Message& reply : *worked.replies) {
        // The time that the work took in the simulation, not on this machine.
        if (auto* result = std::get_if<UnitResult>(&reply)) {
          result->compute_us = static_cast<std::uint64_t>(cost.count());
        }
      }
    } else {
      const Error& error = worked.replies.error();
      // A liar's nonsense makes the master answer with nonsense.
      const bool is_expected = withholder_ != nullptr ||
                               (error.code == ErrorCode::kResources && starved_until_ > Instant{});
      context_.log.mark("branch.work_failed_for_memory");
      if (!is_expected) context_.log.violation("work failed: " + error.message);
    }
    pass([done, worked = std::move(worked)]() mutable { done(std::move(worked)); });
  });
}

void VolunteerProcess::dial(Dialled on_dialled) {
  const Instant reachable = std::max(context_.clock.now() + context_.network.latency(shape_),
                                     context_.network.stalled_until(index_));
  context_.clock.at(reachable, [this, life = life_, on_dialled = std::move(on_dialled)] {
    if (life == life_) connect(on_dialled);
  });
}

void VolunteerProcess::connect(const Dialled& on_dialled) {
  if (relay_ != nullptr ? !relay_->is_running() : !master_.is_running()) {
    return pass([on_dialled] { on_dialled(Error{ErrorCode::kIo, "connection refused"}); });
  }
  if (last_link_) last_link_->abandon();
  const auto pack = [this](Bytes payload, Lane lane) -> std::optional<Packet> {
    if (lie_ || withholder_ != nullptr) {
      Message message = decode(payload).value();
      if (lie_) falsify(message);
      if (withholds(message)) return std::nullopt;
      payload = encode(message);
    }
    return context_.pack(std::move(payload), lane);
  };
  last_link_ = std::make_shared<SimLink>(
      relay_ != nullptr ? relay_->network() : context_.network, End::kVolunteer, pack,
      [this](std::function<void()> call) { pass(std::move(call)); });
  last_link_->join(relay_ != nullptr
                       ? relay_->admit(index_, standing_.identity, last_link_->hearing())
                       : master_.admit(index_, standing_, shape_, last_link_->hearing()));
  pass([on_dialled, link = last_link_] { on_dialled(std::shared_ptr<Link>(link)); });
}

// ---- What the client does ----------------------------------------------------------------------

void VolunteerProcess::saw(const volunteer::Event& event) {
  context_.clock.note(event.index() + 100);
  const auto* received = std::get_if<volunteer::MessageReceived>(&event);
  if (received == nullptr || std::holds_alternative<Heartbeat>(received->message)) return;
  if (withholder_ != nullptr && std::holds_alternative<LeaseGrant>(received->message)) {
    withholder_->lent.push_back(now());
  }
  if (context_.log.is_traced()) context_.log.line(name_, "<- " + describe(received->message));
}

void VolunteerProcess::saw(const volunteer::VolunteerCore& core,
                           const volunteer::Effects& effects) {
  context_.tell_checkers([&](Checker& c) { c.work_waiting(core.work_waiting()); });
  for (const volunteer::Effect& effect : effects) {
    if (std::holds_alternative<volunteer::StartWork>(effect) && last_link_ &&
        last_link_->bytes_waiting() > context_.options.volunteer_queue_bytes_max) {
      context_.log.mark("branch.work_waits_for_the_link");
    }
    if (!context_.log.is_traced()) continue;
    if (const std::string text = describe(effect); !text.empty()) context_.log.line(name_, text);
  }
}

void VolunteerProcess::conclude(const volunteer::Exit& exit) {
  context_.log.mark(exit.success ? "exit.success" : "exit.failure");
  const bool is_sent_away = !exit.success && exit.error.code != ErrorCode::kIdentity;
  if (is_sent_away && context_.options.strangers.are_there) {
    const bool is_behind_liar = relay_ != nullptr && relay_->is_liar();
    const bool is_honest = !lie_ && withholder_ == nullptr && !is_behind_liar;
    if (is_honest) context_.log.violation(name_ + ", which is honest, ends: " + exit.error.message);
    if (lie_) on_sent_away_();
    come_again();
  }
  end(true);
  start_later();
}

void VolunteerProcess::come_again() {
  is_removed_ =
      !context_.options.strangers.come_again || master_.kept_out().has_suspended(standing_.invite);
  if (is_removed_) return;
  context_.log.line(name_, "has another key");
  context_.log.mark("branch.another_key");
  standing_.identity = KeyId{++keys_, index_ + 1};
}

}  // namespace gleaner::sim
