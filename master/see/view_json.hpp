// The run as JSON: for the page and its API as openapi.json describes it, and for programs that
// read events (EVENTS.md). Pure functions; what is unknown is null, and text from peers is made
// printable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "master/see/history_series.hpp"
#include "master/see/page_view.hpp"
#include "master/see/receipt_log.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

// A text as a QR code, which a phone's camera reads.

// The code's rows, each a '1' for every dark module and a '0' for every light one, without the
// quiet zone of four modules that belongs around it. Empty when the text is longer than a code can
// hold.
std::vector<std::string> qr_rows(std::string_view text);

std::string run_json(const PageView& view, const RunFacts& facts, const HistorySeries& history);
std::string shards_json(const PageView& view);
// Addresses are null without `with_addresses`.
std::string volunteers_json(const PageView& view, const RunFacts& facts, const CreditTally& credit,
                            bool with_addresses);
std::string configuration_json(const RunFacts& facts);
// How a machine joins, for whom the line is, and the line as a QR code.
std::string join_json(const Listening& listening);
// The receipts of `count` shards of a round, from the shard `first` on, and who is kept out.
// Without `people`, for observers, there are sums alone.
std::string receipts_json(const ReceiptLog& log, RoundIndex round, std::size_t first,
                          std::size_t count, const PageView* people);
// `id` names the event for a reader that comes back.
std::string event_shown_json(const EventShown& event, const std::string& id);
std::string history_json(const HistorySeries& history, RoundIndex from, RoundIndex to,
                         std::size_t pieces);
// Each run whole, in at most `pieces` pieces.
std::string histories_json(const std::vector<RunHistory>& runs, std::size_t pieces);

// One JSON object without a newline for an event, and for the progress at a moment.
std::string event_json(const RunEvent& event);
std::string progress_json(const RunProgress& progress);

}  // namespace gleaner
