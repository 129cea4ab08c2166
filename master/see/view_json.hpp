// The run, its configuration and how to join it as JSON: for the page and its API, as openapi.json
// describes it. Pure functions, here and in the other sources *_json: unknown values are null, and
// text from peers is made printable.
#pragma once

#include <string>

#include "master/see/history_series.hpp"
#include "master/see/page_view.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

std::string run_json(const PageView& view, const RunFacts& facts, const HistorySeries& history);
std::string configuration_json(const RunFacts& facts);
// How a machine joins, whom the line is for, and the line as a QR code.
std::string join_json(const Listening& listening);
}  // namespace gleaner
