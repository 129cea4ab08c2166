#include "master/label_documents.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/check.hpp"
#include "common/keep_best.hpp"
#include "common/kernels/kernels.hpp"
#include "common/natural_log.hpp"

namespace gleaner {
namespace {

constexpr double kSaturation = 1.0;     // BM25's k1
constexpr double kLengthWeight = 0.75;  // its b
constexpr float kMatchWeight = 2.0F;
constexpr std::size_t kPlaced = 200;  // documents whose place is looked at
constexpr std::size_t kVoting = 20;   // of these
constexpr std::size_t kLabelsAtOnce = 256;

// Makes it one long; a shorter one, which has no direction, becomes zero.
void normalise(std::span<float> place, const Kernels& kernels) {
  constexpr float kLengthMin = 1e-20F;
  const float length = std::sqrt(kernels.sum_of_squares(place.data(), place.size()));
  const float scale = length > kLengthMin ? 1 / length : 0.0F;
  for (float& value : place) value *= scale;
}

}  // namespace

LabelDocuments::LabelDocuments(const TrainingPoints& points)
    : rarity_(points.features), posting_begin_(std::size_t{points.features} + 1) {
  add_postings(read(points));
}

std::vector<float> LabelDocuments::read(const TrainingPoints& points) {
  std::vector<float> counts;
  std::vector<std::uint32_t> having(points.features);  // points, by feature
  std::vector<std::pair<std::uint32_t, std::uint32_t>> bearers;
  for (std::uint32_t p = 0; p < points.count; ++p) {
    const ExampleView point = points.at(p);
    for (std::size_t i = 0; i < point.features.size(); ++i) {
      if (point.values[i] != 0) ++having[point.features[i]];
    }
    for (const std::uint32_t label : point.labels) bearers.emplace_back(label, p);
  }
  for (std::size_t f = 0; f < having.size(); ++f) {
    if (having[f] == 0) continue;
    rarity_[f] =
        static_cast<float>(natural_log(static_cast<double>(points.count) / double(having[f])));
  }
  std::ranges::sort(bearers);
  std::vector<std::uint32_t> all;  // of the label's points
  for (auto bearer = bearers.begin(); bearer != bearers.end();) {
    const std::uint32_t label = bearer->first;
    all.clear();
    for (; bearer != bearers.end() && bearer->first == label; ++bearer) {
      const ExampleView point = points.at(bearer->second);
      for (std::size_t i = 0; i < point.features.size(); ++i) {
        if (point.values[i] != 0) all.push_back(point.features[i]);
      }
    }
    std::ranges::sort(all);
    // Labels before it that no point bears have empty documents.
    document_begin_.resize(label + std::size_t{1}, features_.size());
    for (std::size_t i = 0, end = 0; i < all.size(); i = end) {
      while (end < all.size() && all[end] == all[i]) ++end;
      features_.push_back(all[i]);
      counts.push_back(static_cast<float>(end - i));
      weights_.push_back(counts.back() * rarity_[all[i]]);
    }
    document_begin_.push_back(features_.size());
  }
  return counts;
}

void LabelDocuments::add_postings(std::span<const float> counts) {
  const std::size_t labels = document_begin_.size() - 1;
  double documents = 0;
  double length = 0;
  for (std::size_t label = 0; label < labels; ++label) {
    if (document_begin_[label + 1] > document_begin_[label]) ++documents;
  }
  for (std::size_t i = 0; i < features_.size(); ++i) {
    ++posting_begin_[features_[i] + std::size_t{1}];
    length += double{counts[i]};
  }
  const double mean_length = documents == 0 ? 1 : length / documents;
  for (std::size_t f = 1; f < posting_begin_.size(); ++f)
    posting_begin_[f] += posting_begin_[f - 1];
  std::vector<std::uint64_t> next(posting_begin_.begin(), posting_begin_.end() - 1);
  postings_.resize(features_.size());
  for (std::size_t label = 0; label < labels; ++label) {
    double own_length = 0;
    for (std::uint64_t i = document_begin_[label]; i < document_begin_[label + 1]; ++i) {
      own_length += double{counts[i]};
    }
    const double relative = own_length / mean_length;
    for (std::uint64_t i = document_begin_[label]; i < document_begin_[label + 1]; ++i) {
      const std::uint32_t f = features_[i];
      const auto having =
          static_cast<double>(posting_begin_[f + std::size_t{1}] - posting_begin_[f]);
      const double count = double{counts[i]};
      const double rarity = natural_log((documents + 1) / (having + 0.5));
      const double saturated =
          count * (kSaturation + 1) /
          (count + kSaturation * (1 - kLengthWeight + kLengthWeight * relative));
      postings_[next[f]++] = {static_cast<std::uint32_t>(label),
                              static_cast<float>(rarity * rarity * saturated),
                              static_cast<float>(std::sqrt(count / relative) / having)};
    }
  }
}

void LabelDocuments::embed(InputLayer& layer) {
  const Kernels& kernels = default_kernels();
  const std::size_t labels = document_begin_.size() - 1;
  for (std::size_t begin = 0; begin < labels; begin += kLabelsAtOnce) {
    std::vector<ExampleView> documents;
    for (std::size_t label = begin; label < std::min(labels, begin + kLabelsAtOnce); ++label) {
      const std::uint64_t first = document_begin_[label];
      const std::uint64_t size = document_begin_[label + 1] - first;
      documents.push_back({{},
                           std::span(features_).subspan(first, size),
                           std::span(weights_).subspan(first, size)});
    }
    const std::vector<float> places = layer.embed(documents);
    width_ = places.size() / documents.size();
    places_.resize(labels * width_);
    std::ranges::copy(places, places_.begin() + static_cast<std::ptrdiff_t>(begin * width_));
  }
  for (std::size_t label = 0; label < labels; ++label) {
    normalise(std::span(places_).subspan(label * width_, width_), kernels);
  }
}

void LabelDocuments::known_features(const ExampleView& example,
                                    std::vector<std::uint32_t>& features,
                                    std::vector<float>& rarities) const {
  for (std::size_t i = 0; i < example.features.size(); ++i) {
    const std::uint32_t feature = example.features[i];
    if (feature >= rarity_.size() || example.values[i] == 0) continue;
    if (posting_begin_[feature] == posting_begin_[feature + std::size_t{1}]) continue;
    features.push_back(feature);
    rarities.push_back(rarity_[feature]);
  }
}

void LabelDocuments::find(std::span<const std::uint32_t> features, Scratch& scratch) const {
  const std::size_t labels = document_begin_.size() - 1;
  scratch.match.resize(labels);
  scratch.own.resize(labels);
  for (const std::uint32_t feature : features) {
    for (std::uint64_t p = posting_begin_[feature]; p < posting_begin_[feature + std::size_t{1}];
         ++p) {
      const Posting& posting = postings_[p];
      scratch.match[posting.label] += posting.match;
      scratch.own[posting.label] += posting.own;
    }
  }
  const float most = labels == 0 ? 0.0F : *std::ranges::max_element(scratch.match);
  scratch.best.clear();
  for (std::uint32_t label = 0; label < labels; ++label) {
    const float match = std::exchange(scratch.match[label], 0.0F);
    const float own = std::exchange(scratch.own[label], 0.0F);
    if (!(match > 0)) continue;
    keep_best(scratch.best, kPlaced, {label, kMatchWeight * match / most + own}, Match::is_better);
  }
}

std::vector<LabelShare> LabelDocuments::shares(std::span<const float> place,
                                               Scratch& scratch) const {
  const Kernels& kernels = default_kernels();
  std::vector<Match>& best = scratch.best;
  for (Match& match : best) {
    const float* own = places_.data() + match.label * width_;
    match.score *= std::max(0.0F, kernels.dot(place.data(), own, width_));
  }
  std::ranges::sort(best, Match::is_better);
  best.resize(std::min(best.size(), kVoting));
  const auto power = [](const Match& match) {
    const auto score = double{match.score};
    return score * score * std::sqrt(score);
  };
  double sum = 0;
  for (const Match& match : best) sum += power(match);
  std::vector<LabelShare> shares;
  for (const Match& match : best) {
    if (match.score > 0) shares.push_back({match.label, static_cast<float>(power(match) / sum)});
  }
  return shares;
}

std::vector<std::vector<LabelShare>> LabelDocuments::votes(std::span<const ExampleView> examples,
                                                           InputLayer& layer,
                                                           ThreadPool& pool) const {
  std::vector<std::vector<std::uint32_t>> features(examples.size());
  std::vector<std::vector<float>> rarities(examples.size());
  std::vector<ExampleView> known;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    known_features(examples[i], features[i], rarities[i]);
    known.push_back({{}, features[i], rarities[i]});
  }
  const std::vector<float> embedded = layer.embed(known);
  AlignedVector<float> places(embedded.begin(), embedded.end());
  const std::size_t width = examples.empty() ? 0 : places.size() / examples.size();
  GLEANER_CHECK(width_ == width || examples.empty() || document_begin_.size() == 1);
  std::vector<std::vector<LabelShare>> all(examples.size());
  std::vector<Scratch> scratch(pool.threads());
  pool.parallel_for(examples.size(), [&](std::size_t i, unsigned worker) {
    const auto place = std::span(places).subspan(i * width, width);
    normalise(place, default_kernels());
    find(features[i], scratch[worker]);
    all[i] = shares(place, scratch[worker]);
  });
  return all;
}

}  // namespace gleaner
