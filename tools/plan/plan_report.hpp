// A plan as people and programs read it.
#pragma once

#include "tools/cli/report.hpp"
#include "tools/plan/plan.hpp"

namespace gleaner {

Report plan_report(const PlanInput& input, const Plan& plan);

}  // namespace gleaner
