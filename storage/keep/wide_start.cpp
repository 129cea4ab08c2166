#include "storage/keep/wide_start.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/data/name_table.hpp"
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

Result<std::unique_ptr<PackedDataset>> open_label_texts(const std::string& path,
                                                        const std::string& train_path,
                                                        const PackedDataset& train,
                                                        PackOptions options) {
  const std::string found = path.empty() ? companion_path(train_path, kLabelTextsFile) : path;
  if (found.empty()) return std::unique_ptr<PackedDataset>();
  options.text.limits = Dimensions{train.features(), train.labels()};
  options.text.limits_name = train_path;
  auto texts = open_or_pack(found, options);
  if (!texts) return texts.error();
  if (auto fits = check_limits(**texts, options.text); !fits) return fits.error();
  if (auto intact = (*texts)->verify_all(); !intact) return intact.error();
  return texts;
}

Result<std::unique_ptr<WideStart>> WideStart::open(const ModelConfig& config,
                                                   const PackedDataset& train,
                                                   const InitialModel* initial,
                                                   const PackedDataset* texts) {
  std::unique_ptr<WideStart> start(new WideStart(config));
  start->train_ = &train;
  start->initial_ = initial;
  auto examples = LabelExamples::open(train);
  if (!examples) return examples.error();
  start->examples_ = std::move(*examples);
  if (auto taken = start->take_texts(texts); !taken) return taken.error();
  std::vector<double> occurrences(config.features);
  for (std::uint64_t point = 0; point < train.points(); ++point) {
    for (const std::uint32_t feature : train.example(point).features) ++occurrences[feature];
  }
  start->take_rarities(std::move(occurrences), train.points());
  return start;
}

Result<std::unique_ptr<WideStart>> WideStart::of_texts(const ModelConfig& config,
                                                       const PackedDataset& texts,
                                                       std::vector<double> occurrences) {
  std::unique_ptr<WideStart> start(new WideStart(config));
  if (auto taken = start->take_texts(&texts); !taken) return taken.error();
  start->take_rarities(std::move(occurrences), config.points);
  return start;
}

Result<void> WideStart::take_texts(const PackedDataset* texts) {
  texts_ = texts;
  if (texts == nullptr) return {};
  auto label_texts = LabelExamples::open(*texts);
  if (!label_texts) return label_texts.error();
  label_texts_ = std::move(*label_texts);
  return {};
}

void WideStart::take_rarities(std::vector<double> occurrences, std::uint64_t points) {
  rarities_ = std::move(occurrences);
  for (double& of_feature : rarities_) {
    of_feature = natural_log(static_cast<double>(points + 1) / (of_feature + 0.5));
  }
}

void WideStart::sum_up(std::uint32_t label) {
  using Indices = std::span<const std::uint32_t>;
  const auto own = train_ == nullptr ? Indices() : examples_.of(label);
  const auto texts = texts_ == nullptr ? Indices() : label_texts_.of(label);
  examples_summed_ = static_cast<std::uint32_t>(own.size());
  for (const std::uint32_t index : own) centroid_.add(train_->example(index));
  for (const std::uint32_t index : texts) {
    centroid_.add(texts_->example(index),
                  double{config_.wide_text_weight} / static_cast<double>(texts.size()));
  }
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
  const std::uint64_t kept = wide_features_kept(config_, own.size() + (texts.empty() ? 0 : 1));
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
  const std::uint32_t count = examples_summed_;
  if (initial_ != nullptr && initial_->has_label(label)) {
    if (auto read = initial_->read_wide_row(label, row); !read) return read;
    if (row.own > 0 || count == 0) {
      add_at_zero(row);
      return {};
    }
    row.clear();
  }
  double squares = 0;
  for (const Weight& weight : weights_) squares += weight.sum * weight.sum;
  const double scale = squares > 0 ? double{config_.wide_scale} / std::sqrt(squares) : 0;
  for (const Weight& weight : weights_) {
    row.add(weight.feature, static_cast<float>(weight.sum * scale));
  }
  row.bias = prior_log_odds(config_.points, count) + kBiasRaise;
  row.own = count > 0 ? static_cast<float>(scale * rarity_) : 0.0F;
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
