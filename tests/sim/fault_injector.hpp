// Injects the faults of a plan, each kind at its own times, until the plan's end.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tests/sim/master_process.hpp"
#include "tests/sim/sim_context.hpp"
#include "tests/sim/volunteer_process.hpp"

namespace gleaner::sim {

class FaultInjector {
 public:
  using Volunteers = std::vector<std::unique_ptr<VolunteerProcess>>;

  FaultInjector(SimContext& context, MasterProcess& master, Volunteers& volunteers)
      : context_(context), master_(master), volunteers_(volunteers) {}

  void start();

 private:
  void recur(Fault fault);
  void happen(Fault fault);
  void break_a_connection(bool is_half_open);
  void stall_a_direction();
  void cut_off_several();
  void start_a_twin();
  void let_strangers_in(bool is_talkative);
  Instant for_a_while();
  VolunteerProcess& someone();

  SimContext& context_;
  MasterProcess& master_;
  Volunteers& volunteers_;
  Volunteers twins_;
  std::size_t gone_ = 0;  // the first volunteers, which are gone for good
};

}  // namespace gleaner::sim
