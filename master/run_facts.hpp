// Facts of a run that console and page show besides its progress: the configuration in effect, what
// the recipe chose, how a machine joins, and who may not.
#pragma once

#include <string>
#include <vector>

#include "master/config/config.hpp"
#include "master/console/progress_events.hpp"
#include "master/entrance/entrance.hpp"
#include "master/http/page_view.hpp"
#include "master/http/run_web.hpp"
#include "master/run_data.hpp"

namespace gleaner {

// `config` with the port in use where it listens, and `where` the HOST:PORT that join lines name.
// No invite is part of it.
RunFacts run_facts(const MasterConfig& config, const RunData& data, const std::string& where);

// Shows what the recipe chose for a new run, the run that starts from `checkpoint`, and where its
// page is; `web` may be null.
void announce(const MasterConfig& config, const RunData& data, RoundIndex checkpoint,
              const RunWeb* web, Console& console);

// Keys that the master keeps out; none where it is closed to all.
std::vector<BanShown> bans_shown(Entrance& entrance);

}  // namespace gleaner
