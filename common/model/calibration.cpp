#include "common/model/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <system_error>

namespace gleaner {
namespace {

constexpr int kStepsMax = 100;
constexpr int kHalvingsMax = 30;
constexpr double kGainMin = 1e-10;  // of the mean loss

struct MeasuredLoss {
  std::span<const JudgedLogit> answers;
  double target_true, target_false;  // Platt's, which keep the map finite where logits separate

  [[nodiscard]] double target(const JudgedLogit& answer) const {
    return answer.is_true ? target_true : target_false;
  }

  [[nodiscard]] double of(const Calibration& map) const {
    double sum = 0;
    for (const JudgedLogit& answer : answers) {
      const double z = map.slope * answer.logit + map.offset;
      sum += std::max(z, 0.0) + std::log1p(std::exp(-std::abs(z))) - target(answer) * z;
    }
    return sum;
  }

  // Newton's step.
  [[nodiscard]] Calibration step(const Calibration& map) const {
    double g0 = 0, g1 = 0, h00 = 0, h01 = 0, h11 = 1e-9;
    for (const JudgedLogit& answer : answers) {
      const double x = answer.logit;
      const double p = 1 / (1 + std::exp(-(map.slope * x + map.offset)));
      const double weight = std::max(p * (1 - p), 1e-12);
      g0 += p - target(answer);
      g1 += (p - target(answer)) * x;
      h00 += weight;
      h01 += weight * x;
      h11 += weight * x * x;
    }
    const double determinant = h00 * h11 - h01 * h01;
    return {(h00 * g1 - h01 * g0) / determinant, (h11 * g0 - h01 * g1) / determinant};
  }
};

}  // namespace

Calibration fit_calibration(std::span<const JudgedLogit> answers) {
  const auto trues = static_cast<double>(std::ranges::count(answers, true, &JudgedLogit::is_true));
  const double falses = static_cast<double>(answers.size()) - trues;
  if (answers.size() < kCalibrationAnswersMin || trues == 0 || falses == 0) return {};
  const MeasuredLoss loss{answers, (trues + 1) / (trues + 2), 1 / (falses + 2)};
  Calibration map{1, 0};
  double now = loss.of(map);
  for (int i = 0; i < kStepsMax; ++i) {
    const Calibration step = loss.step(map);
    double next = now;
    Calibration tried;
    double length = 1;
    for (int halving = 0; halving < kHalvingsMax; ++halving, length /= 2) {
      tried = {map.slope - length * step.slope, map.offset - length * step.offset};
      next = loss.of(tried);
      if (next < now) break;
    }
    if (!(now - next > kGainMin * static_cast<double>(answers.size()))) break;
    map = tried;
    now = next;
  }
  return map.is_fitted() && std::isfinite(map.slope) && std::isfinite(map.offset) ? map
                                                                                  : Calibration();
}

std::string to_text(const Calibration& calibration) {
  return fmt::format("{} {}", calibration.slope, calibration.offset);
}

Calibration calibration_of_text(const std::string& text) {
  Calibration read;
  const char* const end = text.data() + text.size();
  const auto slope = std::from_chars(text.data(), end, read.slope);
  if (slope.ec != std::errc() || slope.ptr == end) return {};
  const auto offset = std::from_chars(slope.ptr + 1, end, read.offset);
  const bool is_sound = offset.ec == std::errc() && offset.ptr == end &&
                        std::isfinite(read.slope) && std::isfinite(read.offset);
  return is_sound && read.is_fitted() ? read : Calibration();
}

}  // namespace gleaner
