// Exact evaluation: every neuron of some shards is scored for every example and the best k of each
// are kept, by descending score, then ascending neuron.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/kernels.hpp"
#include "common/thread_pool.hpp"
#include "schema/hidden_codes.hpp"
#include "schema/messages.hpp"
#include "volunteer/train/output/output_shard.hpp"

namespace gleaner {

// `shards` ascend. Returns examples x min(k, neurons of the shards) entries; the examples' codes
// are within the bounds of row_checks.hpp. The same for any pool.
std::vector<ScoredNeuron> exact_top(std::span<const OutputShard* const> shards,
                                    const HiddenCodes& codes, std::uint32_t top_k,
                                    const Kernels& kernels, ThreadPool& pool);

// Neurons of the shards, at most `top_k`: the entries an example of exact_top.
std::uint32_t exact_top_entries(std::span<const OutputShard* const> shards, std::uint32_t top_k);

}  // namespace gleaner
