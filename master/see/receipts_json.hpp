// Receipts as JSON, as openapi.json describes them.
#pragma once

#include <cstddef>
#include <string>

#include "master/see/page_view.hpp"
#include "master/see/receipt_log.hpp"

namespace gleaner {

// The receipts of `count` shards of a round, from shard `first` on, and the banned keys. Without
// `people`, for observers, only sums.
std::string receipts_json(const ReceiptLog& log, RoundIndex round, std::size_t first,
                          std::size_t count, const PageView* people);

}  // namespace gleaner
