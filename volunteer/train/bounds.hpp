// Magnitudes within which training arithmetic stays finite, whatever a peer sends: with hidden
// scales and weights below these, no sum of products can overflow a float, and an update moves a
// weight by far too little to leave the range within a run. So no NaN ever arises, whose bits would
// differ between processors.
#pragma once

namespace gleaner {

inline constexpr float kHiddenScaleMax = 0x1p32F;
inline constexpr float kWeightMagnitudeMax = 0x1p40F;
inline constexpr float kStateMax = 0x1p116F;

}  // namespace gleaner
