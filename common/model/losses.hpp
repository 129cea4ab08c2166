// The list of losses that a run can train with. README.md of common/train says how to add one.
#pragma once

#include <cstdint>

#include "common/model/model_config.hpp"

namespace gleaner {

// A row NAME stands for Loss::kNAME, and for NAMELoss in common/train/kernel_losses.hpp.
#define GLEANER_LOSSES(LOSS) LOSS(Logistic)

#define GLEANER_LOSS_KIND(name) k##name,
enum class Loss : std::uint8_t { GLEANER_LOSSES(GLEANER_LOSS_KIND) kCount };
#undef GLEANER_LOSS_KIND

// The configuration does not name the loss: there is one.
inline Loss loss_of(const ModelConfig&) {
  return Loss::kLogistic;
}

}  // namespace gleaner
