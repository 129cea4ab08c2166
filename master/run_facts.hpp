// Facts of a run that the page shows besides its progress: the configuration in effect, what the
// recipe chose, and how a machine joins.
#pragma once

#include "master/config/config.hpp"
#include "master/http/page_view.hpp"
#include "master/run_data.hpp"

namespace gleaner {

// `config` with the port in use where it listens. The join token is no part of it.
RunFacts run_facts(const MasterConfig& config, const RunData& data);

}  // namespace gleaner
