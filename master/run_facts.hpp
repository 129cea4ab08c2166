// Facts of a run that console and page show besides its progress: the configuration in effect, what
// the recipe chose, how a machine joins, and who may not.
#pragma once

#include <string>
#include <vector>

#include "master/config/config.hpp"
#include "master/console/progress_events.hpp"
#include "master/entrance/entrance.hpp"
#include "master/http/page_view.hpp"
#include "master/run_data.hpp"

namespace gleaner {

// `config` with the port in use where it listens, and `where` the HOST:PORT that join lines name.
// No invite is part of it.
RunFacts run_facts(const MasterConfig& config, const RunData& data, const std::string& where);

// The first event that the console shows of a run that starts from `checkpoint`.
RunStarted run_started(const MasterConfig& config, const RunData& data, RoundIndex checkpoint);

// Keys that the master keeps out; none where it is closed to all.
std::vector<BanShown> bans_shown(Entrance& entrance);

}  // namespace gleaner
