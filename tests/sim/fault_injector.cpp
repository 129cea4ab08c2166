#include "tests/sim/fault_injector.hpp"

#include <utility>

namespace gleaner::sim {
namespace {

constexpr std::int64_t kSlowFactor = 50;
constexpr std::int64_t kSlowDiskFactor = 30;
constexpr std::size_t kStrangersAtOnce = 40;
constexpr std::size_t kStrangerBase = 1'000'000;  // no volunteer's link

}  // namespace

void FaultInjector::start() {
  for (std::size_t i = 0; i < kFaultKinds; ++i) recur(static_cast<Fault>(i));
}

void FaultInjector::recur(Fault fault) {
  const Millis mean = context_.options.faults[fault];
  if (mean.count() == 0) return;
  context_.clock.after(context_.uniform(Millis(1), 2 * mean), [this, fault] {
    if (context_.clock.now() > Instant(context_.options.faults.until)) return;
    context_.log.mark(std::string("fault.") + name_of(fault));
    context_.log.line("FAULT", name_of(fault));
    happen(fault);
    recur(fault);
  });
}

VolunteerProcess& FaultInjector::someone() {
  return *volunteers_[context_.random.next_below(volunteers_.size())];
}

Instant FaultInjector::for_a_while() {
  return context_.clock.now() + context_.uniform(Millis(20), context_.options.faults.lasting_most);
}

void FaultInjector::happen(Fault fault) {
  switch (fault) {
    case Fault::kReset:
      return break_a_connection(false);
    case Fault::kHalfOpen:
      return break_a_connection(true);
    case Fault::kStall:
      return stall_a_direction();
    case Fault::kPartition:
      return cut_off_several();
    case Fault::kVolunteerKill:
      return someone().kill(true);
    case Fault::kVolunteerPower:
      return someone().kill(false);
    case Fault::kVolunteerFreeze: {
      const Millis silence = context_.options.master.silence;
      return someone().freeze(context_.clock.now() + context_.uniform(silence / 2, 2 * silence));
    }
    case Fault::kVolunteerStop:
      return someone().ask_to_stop();
    case Fault::kVolunteerSlow:
      return someone().slow(for_a_while(), kSlowFactor);
    case Fault::kVolunteerMemory:
      return someone().restart_without_memory(for_a_while());
    case Fault::kTwin:
      return start_a_twin();
    case Fault::kStrangersSilent:
      return let_strangers_in(false);
    case Fault::kStrangersGarbage:
      return let_strangers_in(true);
    case Fault::kMasterKill:
      if (master_.is_running()) master_.die(MasterProcess::Death::kProcess);
      return;
    case Fault::kMasterPower:
      if (master_.is_running()) master_.die(MasterProcess::Death::kMachine);
      return;
    case Fault::kMasterStop:
      return master_.ask_to_stop();
    case Fault::kMasterInRecovery:
      master_.die_in_recovery();
      if (master_.is_running()) master_.die(MasterProcess::Death::kProcess);
      return;
    case Fault::kMasterInFold:
      return master_.die_in_fold();
    case Fault::kDiskSlow:
      return master_.slow_disk(for_a_while(), kSlowDiskFactor);
    case Fault::kDiskRead:
      return master_.fail_next_read();
    case Fault::kDiskWrite:
      return master_.fail_next_write();
    case Fault::kDiskFull:
      return master_.fill_disk(for_a_while());
    case Fault::kVolunteerGone:
      if (gone_ + 1 == volunteers_.size()) return;
      return volunteers_[gone_++]->remove(false);
    case Fault::kBan:
      if (gone_ + 1 == volunteers_.size()) return;
      volunteers_[gone_]->remove(true);
      master_.ban(volunteers_[gone_]->identity(), volunteers_[gone_]->name());
      ++gone_;
      return;
  }
}

void FaultInjector::break_a_connection(bool is_half_open) {
  const std::vector<ConnectionId> open = context_.network.open_connections();
  if (open.empty()) return;
  const ConnectionId id = open[context_.random.next_below(open.size())];
  const bool tell_master = !is_half_open || context_.random.chance(1, 3);
  const bool tell_volunteer = !is_half_open || (!tell_master && context_.random.chance(1, 2));
  context_.network.cut(id, tell_master, tell_volunteer);
}

void FaultInjector::stall_a_direction() {
  const std::size_t index = context_.random.next_below(volunteers_.size());
  const End towards = context_.random.chance(1, 2) ? End::kMaster : End::kVolunteer;
  context_.network.stall(index, towards, for_a_while());
}

void FaultInjector::cut_off_several() {
  const Instant until = for_a_while();
  for (std::size_t index = 0; index < volunteers_.size(); ++index) {
    if (context_.random.chance(1, 3)) continue;
    context_.network.stall(index, End::kMaster, until);
    context_.network.stall(index, End::kVolunteer, until);
  }
}

void FaultInjector::start_a_twin() {
  const std::size_t index = context_.random.next_below(volunteers_.size());
  // On a machine of its own, with the identity of another.
  twins_.push_back(std::make_unique<VolunteerProcess>(
      context_, master_, volunteers_.size() + twins_.size(), trusted(KeyId{1, index + 1}), 1));
  VolunteerProcess& twin = *twins_.back();
  twin.start();
  context_.clock.at(for_a_while(), [&twin] { twin.remove(true); });
}

void FaultInjector::let_strangers_in(bool is_talkative) {
  if (!master_.is_running()) return;
  const std::size_t count = 1 + context_.random.next_below(kStrangersAtOnce);
  for (std::size_t i = 0; i < count; ++i) {
    if (!master_.is_running()) return;
    const ConnectionId id = master_.admit(kStrangerBase + i, trusted(KeyId{2, i}),
                                          context_.options.link, {[](Packet) {}, [] {}});
    if (!is_talkative) continue;
    // Frames that arrive whole and make no sense; a frame that trickles never arrives, which is
    // silence to the core.
    Packet packet;
    packet.bytes.resize(1 + context_.random.next_below(200));
    for (auto& byte : packet.bytes) byte = static_cast<std::uint8_t>(context_.random.next());
    packet.wire_bytes = packet.bytes.size();
    context_.network.send(id, End::kVolunteer, std::move(packet));
  }
}

}  // namespace gleaner::sim
