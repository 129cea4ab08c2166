// How many test examples an evaluation scores where nobody has set it. Pure arithmetic.
#pragma once

#include <cstdint>

#include "common/model/model_config.hpp"

namespace gleaner {

// As many of `test_examples` as are scored exactly in a tenth of the work of the training between
// two evaluations, at least 1,000, or all where there are fewer. `label_entries`: true labels of
// all training examples together. `every_epochs` is as in the configuration; 0: only at the end.
// Pure arithmetic.
//
// It counts work instead of time: the evaluations decide when a run ends early and which checkpoint
// is best, and a machine's speed must not change that.
std::uint64_t evaluation_sample(const ModelConfig& model, std::uint64_t label_entries,
                                std::uint32_t every_epochs, std::uint64_t test_examples);

}  // namespace gleaner
