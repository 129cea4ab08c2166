// Tells at its start which run it is: facts, recipe, page, and how machines join.
#pragma once

#include <string>

#include "common/ids.hpp"
#include "master/config/config.hpp"
#include "master/run_data.hpp"
#include "master/see/console.hpp"
#include "master/see/run_events.hpp"
#include "master/see/run_web.hpp"

namespace gleaner {

// The facts of the run as console and page show them.
RunFacts run_facts(const MasterConfig& config, const RunData& data);

// How a machine joins the run that listens at `where`. An address with an invite admits everybody
// who sees it, and this machine may have other users: names the page instead, which shows the line.
std::string join_command(const MasterConfig& config, const std::string& where);

// Shows the recipe's choices for a new run, the run that starts from `checkpoint`, and its page's
// address. `web` may be null.
void announce(const MasterConfig& config, const RunData& data, RoundIndex checkpoint,
              const RunWeb* web, Console& console);

}  // namespace gleaner
