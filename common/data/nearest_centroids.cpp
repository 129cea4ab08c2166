#include "common/data/nearest_centroids.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "common/limits.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kLabelsEstimated = 512;

struct ScoredLabel {
  float score;
  std::uint32_t label;
};

// The best labels of one example. Labels must be offered in ascending order.
class Best {
 public:
  explicit Best(std::size_t top_k) : top_k_(top_k) {}

  void offer(float score, std::uint32_t label) {
    if (best_.size() == top_k_) {
      if (score <= best_.back().score) return;
      best_.pop_back();
    }
    const auto worse =
        std::ranges::upper_bound(best_, score, std::greater<>(), &ScoredLabel::score);
    best_.insert(worse, {score, label});
  }

  [[nodiscard]] std::vector<std::uint32_t> labels() const {
    std::vector<std::uint32_t> labels;
    for (const ScoredLabel& scored : best_) labels.push_back(scored.label);
    return labels;
  }

 private:
  std::size_t top_k_;
  std::vector<ScoredLabel> best_;  // the highest score first
};

}  // namespace

Result<LabelExamples> LabelExamples::open(const PackedDataset& train) {
  if (train.points() > std::numeric_limits<std::uint32_t>::max()) {
    return Error{ErrorCode::kResources, "there are more than 2^32 training examples"};
  }
  if (auto sound = train.verify_all(); !sound) return sound.error();
  LabelExamples found;
  std::vector<std::uint64_t>& offsets = found.offsets_;
  offsets.resize(std::uint64_t{train.labels()} + 1);
  for (std::uint64_t p = 0; p < train.points(); ++p) {
    for (const std::uint32_t label : train.example(p).labels) ++offsets[label + 1];
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  found.examples_.resize(offsets.back());
  std::vector<std::uint64_t> next(offsets.begin(), offsets.end() - 1);
  for (std::uint64_t p = 0; p < train.points(); ++p) {
    for (const std::uint32_t label : train.example(p).labels) {
      found.examples_[next[label]++] = static_cast<std::uint32_t>(p);
    }
  }
  return found;
}

void LabelCentroid::add(const ExampleView& example, double weight) {
  double squares = 0;
  for (const float value : example.values) squares += double{value} * double{value};
  const double scale = squares > 0 ? weight / std::sqrt(squares) : 0;
  for (std::size_t i = 0; i < example.features.size(); ++i) {
    double& sum = sums_[example.features[i]];
    if (sum == 0) features_.push_back(example.features[i]);
    sum += double{example.values[i]} * scale;
  }
}

// The examples that have a feature, and their values.
class NearestCentroids::Postings {
 public:
  struct Entry {
    std::uint32_t example;
    float value;
  };

  Postings(std::span<const ExampleView> examples, std::uint32_t features) : offsets_(features + 1) {
    for_each(examples, [&](std::uint32_t feature, Entry) { ++offsets_[feature + 1]; });
    std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
    entries_.resize(offsets_.back());
    std::vector<std::uint32_t> next(offsets_.begin(), offsets_.end() - 1);
    for_each(examples,
             [&](std::uint32_t feature, Entry entry) { entries_[next[feature]++] = entry; });
  }

  [[nodiscard]] std::span<const Entry> of(std::uint32_t feature) const {
    return std::span(entries_).subspan(offsets_[feature],
                                       offsets_[feature + 1] - offsets_[feature]);
  }

 private:
  template <typename Visit>
  void for_each(std::span<const ExampleView> examples, const Visit& visit) const {
    for (std::uint32_t e = 0; e < examples.size(); ++e) {
      const ExampleView& example = examples[e];
      for (std::size_t i = 0; i < example.features.size(); ++i) {
        if (example.features[i] + 1 >= offsets_.size()) break;  // features ascend
        visit(example.features[i], {e, example.values[i]});
      }
    }
  }

  std::vector<std::uint32_t> offsets_;  // 2^32 entries would be 32 GiB of examples
  std::vector<Entry> entries_;
};

// Examples in a given order, which is random in a large file: fetches dozens together, so that the
// waits for memory overlap.
class NearestCentroids::Reader {
 public:
  Reader(const PackedDataset& train, std::span<const std::uint32_t> order)
      : train_(train), order_(order) {}

  ExampleView next() {
    if (next_ == ahead_.size()) fetch();
    return ahead_[next_++];
  }

 private:
  static constexpr std::size_t kAhead = 64;

  void fetch() {
    ahead_.clear();
    next_ = 0;
    for (const std::uint32_t index : order_.first(std::min(kAhead, order_.size()))) {
      ahead_.push_back(train_.example(index));
    }
    order_ = order_.subspan(ahead_.size());
    for (const ExampleView& example : ahead_) {
      prefetch(std::as_bytes(example.features));
      prefetch(std::as_bytes(example.values));
    }
  }

  static void prefetch(std::span<const std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); at += kCacheLine) __builtin_prefetch(&bytes[at]);
  }

  const PackedDataset& train_;
  std::span<const std::uint32_t> order_;  // the examples that are left
  std::vector<ExampleView> ahead_;
  std::size_t next_ = 0;
};

Result<NearestCentroids> NearestCentroids::open(const PackedDataset& train) {
  auto examples = LabelExamples::open(train);
  if (!examples) return examples.error();
  return NearestCentroids(train, std::move(*examples));
}

NearestCentroids::Work NearestCentroids::work(std::span<const ExampleView> examples) const {
  Work work;
  const PackedSummary summary = train_->summary();
  if (train_->points() == 0 || examples.empty()) return work;
  work.of_centroids = static_cast<double>(examples_.all().size()) *
                      static_cast<double>(summary.feature_entries) /
                      static_cast<double>(train_->points());
  const std::uint32_t labels = train_->labels();
  const std::uint32_t step = std::max(1U, labels / kLabelsEstimated);
  const Postings postings(examples, train_->features());
  LabelCentroid centroid(train_->features());
  std::uint64_t entries = 0;
  std::uint32_t estimated = 0;
  for (std::uint64_t label = 0; label < labels; label += step, ++estimated) {
    for (const std::uint32_t index : examples_.of(static_cast<std::uint32_t>(label))) {
      centroid.add(train_->example(index));
    }
    centroid.take([&](std::uint32_t feature, double) { entries += postings.of(feature).size(); });
  }
  work.per_example =
      static_cast<double>(entries) / estimated * labels / static_cast<double>(examples.size());
  return work;
}

Result<std::vector<std::vector<std::uint32_t>>> NearestCentroids::nearest(
    std::span<const ExampleView> examples, std::size_t top_k,
    const std::atomic<bool>& is_stopping) const {
  const Postings postings(examples, train_->features());
  LabelCentroid centroid(train_->features());
  Reader reader(*train_, examples_.all());
  std::vector<Best> best(examples.size(), Best(top_k));
  std::vector<float> scores(examples.size());
  for (std::uint32_t label = 0; label < train_->labels(); ++label) {
    if (is_stopping) return Error{ErrorCode::kShuttingDown, "asked to stop"};
    for (std::size_t i = 0; i < examples_.of(label).size(); ++i) centroid.add(reader.next());
    double squares = 0;
    std::ranges::fill(scores, 0.0F);
    centroid.take([&](std::uint32_t feature, double sum) {
      squares += sum * sum;
      for (const Postings::Entry& entry : postings.of(feature)) {
        scores[entry.example] += static_cast<float>(sum) * entry.value;
      }
    });
    // The example's own length is left out, since it does not change the order.
    const auto scale = static_cast<float>(squares > 0 ? 1 / std::sqrt(squares) : 0);
    for (std::size_t e = 0; e < examples.size(); ++e) best[e].offer(scale * scores[e], label);
  }
  std::vector<std::vector<std::uint32_t>> labels;
  labels.reserve(best.size());
  for (const Best& each : best) labels.push_back(each.labels());
  return labels;
}

}  // namespace gleaner
