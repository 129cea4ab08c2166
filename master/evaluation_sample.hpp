// How many test examples an evaluation scores where nobody has set it. Pure arithmetic.
#pragma once

#include <cstdint>

#include "common/model/model_config.hpp"

namespace gleaner {

// As many of `test_examples` as are scored exactly in a tenth of the work of the training between
// two evaluations, but at least 1,000, or all where there are fewer. `label_entries`: true labels
// of all training examples together. `every_epochs` as in the configuration; 0: only at the end.
//
// Work and not time is counted: when a run ends early and which checkpoint is its best follow from
// its evaluations, so how fast a machine is must not decide what they score.
std::uint64_t evaluation_sample(const ModelConfig& model, std::uint64_t label_entries,
                                std::uint32_t every_epochs, std::uint64_t test_examples);

}  // namespace gleaner
