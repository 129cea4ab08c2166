// Volunteers and shards as JSON, as openapi.json describes them.
#pragma once

#include <string>

#include "master/see/page_view.hpp"
#include "master/see/receipt_log.hpp"

namespace gleaner {

std::string shards_json(const PageView& view);
// Addresses are null without `with_addresses`.
std::string volunteers_json(const PageView& view, const RunFacts& facts, const CreditTally& credit,
                            bool with_addresses);

}  // namespace gleaner
