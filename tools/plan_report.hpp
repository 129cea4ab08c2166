// A plan as people and programs read it.
#pragma once

#include "tools/plan.hpp"
#include "tools/report.hpp"

namespace gleaner {

Report plan_report(const PlanInput& input, const Plan& plan);

}  // namespace gleaner
