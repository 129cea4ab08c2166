// The k training points nearest to a point, and what labels they have: what memory says, beside
// what a network has learned (k nearest neighbours; mixing the two: Khandelwal et al., arXiv
// 1911.00172). A network's hidden units hold what many points share; neighbours know the rare.
//
// Nearness is the cosine of the points' features, each value as its root times the logarithm of how
// rare its feature is (idf). It does not change with a point's length but for rounding, so whoever
// wants the same bits gives points scaled alike. An inverted index over the features finds the
// neighbours exactly, and the same ones on every machine and for any number of threads. Queries run
// on the pool; one caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/thread_pool.hpp"
#include "master/label_share.hpp"

namespace gleaner {

class Neighbours {
 public:
  static constexpr std::uint32_t kCountUsual = 80;

  // Takes what it needs of the points into memory: 8 bytes a feature of a point, 4 a label. `count`
  // of the points vote, at least 1, each for all of its labels with the square of its nearness over
  // the sum of these, so that the shares of a point with several labels add up to more.
  Neighbours(const TrainingPoints& points, std::uint32_t count);

  // By example: labels that have votes, by descending share, of equal shares the smaller first.
  // None where no training point shares a feature with the example. Of equally near points those
  // that come first vote.
  [[nodiscard]] std::vector<std::vector<LabelShare>> votes(std::span<const ExampleView> examples,
                                                           ThreadPool& pool) const;

  [[nodiscard]] std::uint64_t points() const { return label_begin_.size() - 1; }

 private:
  struct Near {
    std::uint32_t point = 0;
    float nearness = 0;
  };

  struct Scratch {
    std::vector<float> nearness;  // of all points; zero between queries
    std::vector<Near> near;
  };

  // The root and rarity of an example's values, scaled to length one.
  void weigh(const ExampleView& example, std::vector<float>& weights) const;
  void find(const ExampleView& example, Scratch& scratch) const;
  [[nodiscard]] std::vector<LabelShare> shares(std::span<const Near> near) const;

  std::uint32_t count_;
  std::vector<float> rarity_;               // by feature
  std::vector<std::uint64_t> entry_begin_;  // by feature, of:
  std::vector<Near> entries_;               // a point that has it, and its weight there
  std::vector<std::uint64_t> label_begin_;  // by point, of:
  std::vector<std::uint32_t> labels_;
};

}  // namespace gleaner
