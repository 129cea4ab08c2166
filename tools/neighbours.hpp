// The k training points nearest to a point, and what labels they have: what memory says, beside
// what a network has learned (k nearest neighbours; mixing the two: Khandelwal et al., arXiv
// 1911.00172). A network's hidden units hold what many points share; neighbours know the rare.
//
// Nearness is the cosine of the points' features, each value as its root times the logarithm of how
// rare its feature is (idf). It does not change with a point's length. An inverted index over the
// features finds the neighbours exactly. Queries run on the pool; one caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/dataset/text_reader.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "tools/stored_model.hpp"

namespace gleaner {

// What --help says of the flag that names the file.
inline constexpr const char* kNeighboursHelp =
    "the training points, as text or packed: the 80 nearest to a point vote beside the model, and "
    "a "
    "probability is the mean of its own and their share of the votes";

// A label's part of the neighbours' votes, 0 to 1. Each neighbour votes for all of its labels with
// the square of its nearness, so that the shares of a point with several labels add up to more.
struct LabelShare {
  std::uint32_t label = 0;
  float share = 0;
};

class Neighbours {
 public:
  static constexpr std::uint32_t kCountUsual = 80;

  // Reads the training points in `path` (XC or libsvm text or packed) into memory: 8 bytes a
  // feature of a point and 4 a label. `count` of them vote, at least 1. Errors as of
  // PredictPoints::open, whose `options` these are.
  static Result<Neighbours> read(const std::string& path, const TextOptions& options,
                                 std::uint32_t count);

  // By example: labels that have votes, by descending share, of equal shares the smaller first.
  // None where no training point shares a feature with the example. Of equally near points those
  // that come first in the file vote.
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

  Neighbours() = default;
  void index(std::span<const std::uint64_t> begin, std::span<const std::uint32_t> features,
             std::span<const float> values);
  // The root and rarity of an example's values, scaled to length one.
  void weigh(std::span<const std::uint32_t> features, std::span<const float> values,
             std::vector<float>& weights) const;
  void find(const ExampleView& example, Scratch& scratch) const;
  [[nodiscard]] std::vector<LabelShare> shares(std::span<const Near> near) const;

  std::uint32_t count_ = kCountUsual;
  std::vector<float> rarity_;               // by feature
  std::vector<std::uint64_t> entry_begin_;  // by feature, of:
  std::vector<Near> entries_;               // a point that has it, and its weight there
  std::vector<std::uint64_t> label_begin_;  // by point, of:
  std::vector<std::uint32_t> labels_;
};

// The mean of what the network and the neighbours take for a label's probability, as its logit: the
// `top_k` best of both lists, by descending probability, of equals the smaller label first. A label
// that one of them does not name has no probability there, so `network` should go far beyond
// `top_k`. Entries of `network` that are not finite count as not named.
std::vector<ScoredLabel> mixed_with_votes(std::span<const ScoredLabel> network,
                                          std::span<const LabelShare> votes, std::uint32_t top_k);

}  // namespace gleaner
