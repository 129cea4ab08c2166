// The k training points nearest to a point, and what labels they have: what memory says, beside
// what a network has learned (k nearest neighbours; mixing the two: Khandelwal et al., arXiv
// 1911.00172). A network's hidden units hold what many points share; neighbours know the rare.
//
// Nearness is the cosine of the points' features, each value as its root times the logarithm of how
// rare its feature is (idf). It does not change with a point's length but for rounding, so whoever
// wants the same bits gives points scaled alike. An inverted index over the features finds the
// neighbours exactly, and the same ones on every machine and for any number of threads. Queries run
// on the pool; one caller at a time.
//
// Where points bear fewer than two labels each, a label is what its points are about, and its
// centroid knows all of their words together (Rocchio's classifier): the sum of its points, each
// value's root taken, so that what many of them share counts for less than it occurs. The nearest
// centroids then vote beside the nearest points, both sides for a half.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/thread_pool.hpp"
#include "master/scored_label.hpp"

namespace gleaner {

// A label's part of the votes, 0 to 1. Each neighbour votes for all of its labels with the square
// of its nearness, so that the shares of a point with several labels add up to more; a centroid
// votes for its label with the square of its own.
struct LabelShare {
  std::uint32_t label = 0;
  float share = 0;
  friend bool operator==(const LabelShare&, const LabelShare&) = default;
};

class Neighbours {
 public:
  static constexpr std::uint32_t kCountUsual = 80;

  // The training points, which are read one after the other more than once, and for centroids label
  // by label.
  struct Points {
    std::uint32_t count = 0;
    std::uint32_t features = 0;  // ids are below
    std::function<ExampleView(std::uint32_t point)> at;
  };

  // Takes what it needs of the points into memory: 8 bytes a feature of a point, 4 a label, and
  // where centroids vote 8 a feature of a label. `count` of the points vote, at least 1.
  Neighbours(const Points& points, std::uint32_t count);
  // Requires at most 2^32 - 1 points.
  Neighbours(const PackedDataset& points, std::uint32_t count);

  // By example: labels that have votes, by descending share, of equal shares the smaller first.
  // None where no training point shares a feature with the example. Of equally near points those
  // that come first vote.
  [[nodiscard]] std::vector<std::vector<LabelShare>> votes(std::span<const ExampleView> examples,
                                                           ThreadPool& pool) const;

  [[nodiscard]] std::uint64_t points() const { return label_begin_.size() - 1; }

  [[nodiscard]] bool have_centroids() const { return !centroids_.entries.empty(); }

 private:
  // A training point or a label.
  struct Near {
    std::uint32_t id = 0;
    float nearness = 0;
  };

  // Who has a feature, and its weight there. Every entry is expected, then the index opened, then
  // they are added.
  struct Index {
    std::vector<std::uint64_t> begin;  // by feature, of:
    std::vector<Near> entries;
    std::vector<std::uint64_t> next;  // by feature: where its next entry goes
    std::uint32_t ids = 0;            // below

    void expect(std::uint32_t feature) { ++begin[feature + std::size_t{1}]; }

    void open();

    void add(std::uint32_t feature, Near entry) { entries[next[feature]++] = entry; }
  };

  struct Scratch {
    std::vector<float> weights;   // of the example's features
    std::vector<float> nearness;  // by id; zero between queries
    std::vector<Near> near;       // the nearest, those first
    double squares = 0;           // of their nearness, together
  };

  void add_points(const Points& points);
  void add_centroids(const Points& points);
  // The root and rarity of an example's values, scaled to length one.
  void weigh(const ExampleView& example, std::vector<float>& weights) const;
  // The `count` of the index that are nearest to the example, whose weights are known.
  static void find(const Index& index, const ExampleView& example, std::uint32_t count,
                   Scratch& scratch);

  // Its part of the votes of all that were found.
  static double vote(const Near& found, const Scratch& scratch) {
    return double{found.nearness} * found.nearness / scratch.squares;
  }

  [[nodiscard]] std::vector<LabelShare> shares(const ExampleView& example, Scratch& scratch) const;

  std::uint32_t count_;
  std::vector<float> rarity_;  // by feature
  Index points_;
  Index centroids_;                         // by label; empty where they do not vote
  std::vector<std::uint64_t> label_begin_;  // by point, of:
  std::vector<std::uint32_t> labels_;
};

// The mean of what the network and the neighbours take for a label's probability, the latter of
// `weight` between 0 and 1, as its logit: the `top_k` best of both lists, by descending
// probability, of equals the smaller label first. A label that one of them does not name has no
// probability there, so `network` should go far beyond `top_k`: kTopKMax where there are so many.
// Entries of `network` that are not finite count as not named.
std::vector<ScoredLabel> mixed_with_votes(std::span<const ScoredLabel> network,
                                          std::span<const LabelShare> votes, float weight,
                                          std::uint32_t top_k);

}  // namespace gleaner
