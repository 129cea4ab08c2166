#include "storage/keep/wide_start.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/model/shard_rows.hpp"
#include "common/portable_math.hpp"

namespace gleaner {
namespace {

// A start row scores by features at once, so its bias need not be as low as for rows of small
// weights: scores far below 0 are not trained.
constexpr float kBiasRaise = 1.0F;

}  // namespace

std::uint64_t wide_features_kept(const ModelConfig& config, std::uint64_t examples) {
  return std::uint64_t{config.wide_features} * (4 + examples) / 4;
}

Result<std::unique_ptr<WideStart>> WideStart::open(const ModelConfig& config,
                                                   const PackedDataset& train,
                                                   const InitialModel* initial) {
  auto examples = LabelExamples::open(train);
  if (!examples) return examples.error();
  return std::unique_ptr<WideStart>(new WideStart(config, train, initial, std::move(*examples)));
}

WideStart::WideStart(const ModelConfig& config, const PackedDataset& train,
                     const InitialModel* initial, LabelExamples examples)
    : config_(config),
      train_(train),
      initial_(initial),
      examples_(std::move(examples)),
      centroid_(config.features),
      rarities_(config.features) {
  for (std::uint64_t point = 0; point < train.points(); ++point) {
    for (const std::uint32_t feature : train.example(point).features) ++rarities_[feature];
  }
  for (double& of_feature : rarities_) {
    of_feature = natural_log(static_cast<double>(train.points() + 1) / (of_feature + 0.5));
  }
}

void WideStart::sum_up(std::uint32_t label) {
  const std::span<const std::uint32_t> own = examples_.of(label);
  for (const std::uint32_t index : own) centroid_.add(train_.example(index));
  weights_.clear();
  centroid_.take([&](std::uint32_t feature, double sum) { weights_.push_back({feature, sum}); });
  std::ranges::sort(weights_, {}, &Weight::feature);
  double squares = 0;
  double weighted = 0;
  for (Weight& weight : weights_) {
    const double rarity = rarities_[weight.feature];
    squares += weight.sum * weight.sum;
    weighted += rarity * weight.sum * weight.sum;
    weight.sum *= rarity;
  }
  rarity_ = squares > 0 ? weighted / squares : 0;
  const std::uint64_t kept = wide_features_kept(config_, own.size());
  if (weights_.size() <= kept) return;
  const auto end = weights_.begin() + static_cast<std::ptrdiff_t>(kept);
  std::nth_element(weights_.begin(), end, weights_.end(), [](const Weight& a, const Weight& b) {
    const double left = std::abs(a.sum);
    const double right = std::abs(b.sum);
    return left > right || (left == right && a.feature < b.feature);
  });
  weights_.erase(end, weights_.end());
  std::ranges::sort(weights_, {}, &Weight::feature);
}

void WideStart::add_at_zero(WideRow& row) {
  const std::vector<std::uint32_t> known = std::exchange(row.features, {});
  const std::vector<float> weights = std::exchange(row.weights, {});
  std::size_t next = 0;
  for (const Weight& weight : weights_) {
    for (; next < known.size() && known[next] < weight.feature; ++next) {
      row.add(known[next], weights[next]);
    }
    if (next == known.size() || known[next] != weight.feature) row.add(weight.feature, 0.0F);
  }
  for (; next < known.size(); ++next) row.add(known[next], weights[next]);
}

Result<void> WideStart::make_row(std::uint32_t label, WideRow& row) {
  sum_up(label);
  if (initial_ != nullptr && initial_->has_label(label)) {
    if (auto read = initial_->read_wide_row(label, row); !read) return read;
    add_at_zero(row);
    return {};
  }
  double squares = 0;
  for (const Weight& weight : weights_) squares += weight.sum * weight.sum;
  const double scale = squares > 0 ? double{config_.wide_scale} / std::sqrt(squares) : 0;
  const auto count = static_cast<std::uint32_t>(examples_.of(label).size());
  for (const Weight& weight : weights_) {
    row.add(weight.feature, static_cast<float>(weight.sum * scale));
  }
  row.bias = prior_log_odds(train_.points(), count) + kBiasRaise;
  row.own = static_cast<float>(scale * rarity_);
  return {};
}

Result<WideSizes> WideStart::sizes() {
  return wide_sizes(config_, [this](auto label, WideRow& row) { return make_row(label, row); });
}

InitialRows WideStart::rows() {
  return wide_initial_rows(config_,
                           [this](auto label, WideRow& row) { return make_row(label, row); });
}

}  // namespace gleaner
