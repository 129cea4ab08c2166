// Checks what a work unit claims about its batches, before any of it is computed on. Stateless.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "schema/hidden_codes.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// Unpacks hidden codes of `config.hidden` units whose scales are at most kHiddenScaleMax. Refuses,
// with kProtocol, anything else; `what` names them in the error.
Result<HiddenCodes> unpack_checked(const SharedBytes& packed, const ModelConfig& config,
                                   const std::string& what);

// The unit's hidden codes, batch by batch, unpacked on the pool. Refuses leases that are not
// ascending, batches that are not consecutive or beyond the run, batches of the wrong size, and
// positives that are malformed or outside the unit's shards.
Result<std::vector<HiddenCodes>> check_unit(const TrainUnit& unit, const ModelConfig& config,
                                            const ShardMap& map, const RunPlan& plan,
                                            ThreadPool& pool);

// At least one lease, ascending by shard, no shard twice.
Result<void> check_lease_order(std::span<const LeaseRef> leases);

}  // namespace gleaner
