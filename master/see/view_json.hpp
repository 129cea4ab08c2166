// The run, its configuration and how to join it as JSON: for the page and its API, as openapi.json
// describes it. Pure functions, here and in the other sources *_json: unknown values are null, and
// text from peers is made printable.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "master/see/history_series.hpp"
#include "master/see/page_view.hpp"
#include "master/see/receipt_log.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

std::string run_json(const PageView& view, const RunFacts& facts, const HistorySeries& history);
std::string configuration_json(const RunFacts& facts);
// How a machine joins, whom the line is for, and the line as a QR code.
std::string join_json(const Listening& listening);

// Volunteers and shards (holders_json.cpp).
std::string shards_json(const PageView& view);
// Addresses are null without `with_addresses`.
std::string volunteers_json(const PageView& view, const RunFacts& facts, const CreditTally& credit,
                            bool with_addresses);

// The receipts (receipt_log.cpp) of `count` shards of a round, from shard `first` on, and the
// banned keys. Without `people`, for observers, only sums.
std::string receipts_json(const ReceiptLog& log, RoundIndex round, std::size_t first,
                          std::size_t count, const PageView* people);

// The history of one run or of several (history_series.cpp).
std::string history_json(const HistorySeries& history, RoundIndex from, RoundIndex to,
                         std::size_t pieces);
// Each run as a whole, in at most `pieces` pieces.
std::string histories_json(const std::vector<RunHistory>& runs, std::size_t pieces);

}  // namespace gleaner
