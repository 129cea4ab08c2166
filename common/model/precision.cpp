#include "common/model/precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gleaner {
namespace {

constexpr double kPropensityScale = 1 << 24;
// 95 % of a normal distribution lie within this number of standard deviations.
constexpr double kDeviations95 = 1.96;

}  // namespace

std::string to_text(const Precision& precision, const char* plus_minus) {
  if (!precision.is_measured()) return "not evaluated";
  std::string text;
  visit_depths(precision, [&](const char*, const char* title, double value) {
    const bool is_first = text.empty();
    text += fmt::format("{}{} {:.4f}", is_first ? "" : "  ", title, value);
    if (is_first && precision.p_at_1_halfwidth >= 0) {
      text += fmt::format(" {} {:.4f}", plus_minus, precision.p_at_1_halfwidth);
    }
  });
  return text;
}

std::vector<ScoredNeuron> merge_top_k(std::span<const std::span<const ScoredNeuron>> lists,
                                      std::uint32_t top_k) {
  std::vector<ScoredNeuron> merged;
  for (const auto& list : lists) merged.insert(merged.end(), list.begin(), list.end());
  const std::size_t kept = std::min<std::size_t>(top_k, merged.size());
  std::partial_sort(merged.begin(), merged.begin() + static_cast<std::ptrdiff_t>(kept),
                    merged.end(), [](const ScoredNeuron& left, const ScoredNeuron& right) {
                      if (left.score != right.score) return left.score > right.score;
                      return left.neuron < right.neuron;
                    });
  merged.resize(kept);
  return merged;
}

InversePropensities::InversePropensities(std::span<const std::uint32_t> label_counts,
                                         std::uint64_t points, const PropensityModel& model) {
  // With fewer than e examples the formula would give probabilities above one.
  const double c =
      std::max(std::log(static_cast<double>(points)) - 1.0, 0.0) * std::pow(model.b + 1.0, model.a);
  const auto scaled = [&](double count) {
    return static_cast<std::uint64_t>(
        std::llround((1.0 + c * std::pow(count + model.b, -model.a)) * kPropensityScale));
  };
  scaled_.reserve(label_counts.size());
  for (const std::uint32_t count : label_counts) scaled_.push_back(scaled(count));
  unseen_ = scaled(0);
}

double precision_halfwidth(double precision, std::uint64_t evaluated, std::uint64_t scored,
                           std::uint64_t total) {
  if (evaluated == 0 || scored >= total) return -1;
  const double variance = precision * (1 - precision) / static_cast<double>(evaluated);
  const double correction = static_cast<double>(total - scored) / static_cast<double>(total - 1);
  return kDeviations95 * std::sqrt(variance * correction);
}

void MetricSums::add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> ranked) {
  if (labels.empty()) return;
  ++evaluated_;
  weights_.clear();
  for (const std::uint32_t label : labels) weights_.push_back(propensities_.of(label));
  const std::size_t best = std::min<std::size_t>(kDepthMax, weights_.size());
  std::partial_sort(weights_.begin(), weights_.begin() + static_cast<std::ptrdiff_t>(best),
                    weights_.end(), std::greater<>());
  for (std::size_t rank = 0; rank < kDepthMax; ++rank) {
    const bool is_hit =
        rank < ranked.size() && std::binary_search(labels.begin(), labels.end(), ranked[rank]);
    for (std::size_t d = 0; d < kDepths.size(); ++d) {
      if (rank >= kDepths[d]) continue;
      if (rank < best) weighted_best_[d] += weights_[rank];
      if (!is_hit) continue;
      ++hits_[d];
      weighted_hits_[d] += propensities_.of(ranked[rank]);
    }
  }
}

Precision MetricSums::precision() const {
  Precision precision;
  if (evaluated_ == 0) return precision;
  for (std::size_t d = 0; d < kDepths.size(); ++d) {
    precision.p[d] = static_cast<double>(hits_[d]) /
                     (static_cast<double>(kDepths[d]) * static_cast<double>(evaluated_));
    precision.psp[d] =
        static_cast<double>(weighted_hits_[d]) / static_cast<double>(weighted_best_[d]);
  }
  return precision;
}

}  // namespace gleaner
