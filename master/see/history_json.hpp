// The history of one run or of several as JSON, as openapi.json describes it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "master/see/history_series.hpp"

namespace gleaner {

std::string history_json(const HistorySeries& history, RoundIndex from, RoundIndex to,
                         std::size_t pieces);
// Each run as a whole, in at most `pieces` pieces.
std::string histories_json(const std::vector<RunHistory>& runs, std::size_t pieces);

}  // namespace gleaner
