// From the core's reports to the history's records. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "master/core/events/records.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// The record of the checkpoint that a round became, not evaluated yet. `wall_seconds` since 1970.
HistoryRecord history_record(const RoundRecord& round, std::int64_t wall_seconds);
void set_evaluation(HistoryRecord& record, const Evaluation& evaluation);
Receipts to_receipts(const ReceiptRecords& records);

}  // namespace gleaner
