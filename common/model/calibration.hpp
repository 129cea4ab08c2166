// A monotone map from a label's logit to the probability that the label is true, fitted on examples
// that training has not seen (Platt, 1999): the logistic function of slope * logit + offset.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace gleaner {

struct Calibration {
  double slope = -1;  // negative: not fitted, and the logit stays as it is
  double offset = 0;

  [[nodiscard]] bool is_fitted() const { return slope > 0; }

  // The logit of the probability; infinities stay.
  [[nodiscard]] float apply(float logit) const {
    return is_fitted() ? static_cast<float>(slope * logit + offset) : logit;
  }

  friend bool operator==(const Calibration&, const Calibration&) = default;
};

// An answer whose truth is known.
struct JudgedLogit {
  float logit = 0;
  bool is_true = false;
};

// The most likely map, with Platt's targets. Not fitted with fewer than kCalibrationAnswersMin
// answers, or where higher logits are not more often true.
inline constexpr std::size_t kCalibrationAnswersMin = 100;
Calibration fit_calibration(std::span<const JudgedLogit> answers);

// "SLOPE OFFSET", in the settings of a model file; not fitted for an unknown text.
std::string to_text(const Calibration& calibration);
Calibration calibration_of_text(const std::string& text);

}  // namespace gleaner
