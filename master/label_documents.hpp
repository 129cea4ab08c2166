// What the labels of training points are about, where a point bears one: the points of a label are
// its document, and a point is asked which documents match it. Three things decide together:
//
// - words in common, by how rare they are among documents: BM25 (Robertson and Zaragoza, "The
//   Probabilistic Relevance Framework", 2009, section 3; k1 = 1, b = 0.75), with the square of the
//   rarity ln((L + 1) / (df + 1/2)) instead of the rarity, since a word of one document names it;
// - words that a document has nearly to itself: sqrt(tf) / df over the root of its relative length;
// - meaning: the cosine of point and document in the space of the network's input layer, where
//   words that labels share lie close together (the sum of the features' weights times their
//   rarity, without bias and rectifier).
//
// The score is (2 w / max w + o) max(0, c) with these three, w, o and c; max is over the documents.
// A point's features count as there or not; a document's as often as points have them. Shares are
// the scores' powers of 5/2 over the sum of the best twenty's, which is about how often they are
// right (volunteer/train/RECIPES.md). The same bits on every machine and for any number of threads.
// Queries run on the pool; one caller at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/kernels/aligned_vector.hpp"
#include "common/thread_pool.hpp"
#include "master/label_share.hpp"
#include "volunteer/train/input_layer.hpp"

namespace gleaner {

class LabelDocuments {
 public:
  // Takes what it needs of the points into memory: 20 bytes for each feature of each document.
  explicit LabelDocuments(const TrainingPoints& points);

  // Places the documents by the layer as it stands: 4 H bytes a label. Must come before votes(),
  // and again when the layer has changed.
  void embed(InputLayer& layer);

  // By example: labels that have votes, by descending share, of equal shares the smaller first.
  // `layer` is the one of embed().
  [[nodiscard]] std::vector<std::vector<LabelShare>> votes(std::span<const ExampleView> examples,
                                                           InputLayer& layer,
                                                           ThreadPool& pool) const;

 private:
  // A document that has the feature, and what that is worth.
  struct Posting {
    std::uint32_t label = 0;
    float match = 0;  // w
    float own = 0;    // o
  };

  struct Match {
    std::uint32_t label = 0;
    float score = 0;

    static bool is_better(const Match& a, const Match& b) {
      return a.score != b.score ? a.score > b.score : a.label < b.label;
    }
  };

  struct Scratch {
    std::vector<float> match;  // by label; zero between queries
    std::vector<float> own;
    std::vector<Match> best;
  };

  // Takes the points' features by label; returns how many of the label's points have each.
  std::vector<float> read(const TrainingPoints& points);
  void add_postings(std::span<const float> counts);
  // A point's features that documents have, and their rarity.
  void known_features(const ExampleView& example, std::vector<std::uint32_t>& features,
                      std::vector<float>& rarities) const;
  // The documents with the best (2 w / max w + o), in scratch.best.
  void find(std::span<const std::uint32_t> features, Scratch& scratch) const;
  [[nodiscard]] std::vector<LabelShare> shares(std::span<const float> place,
                                               Scratch& scratch) const;

  std::vector<float> rarity_;  // by feature: ln(points / points that have it)
  // Documents, by label: features ascending, and how many points have each, times its rarity.
  std::vector<std::uint64_t> document_begin_{0};
  std::vector<std::uint32_t> features_;
  std::vector<float> weights_;
  std::vector<std::uint64_t> posting_begin_;  // by feature
  std::vector<Posting> postings_;
  std::size_t width_ = 0;        // H
  AlignedVector<float> places_;  // labels x H, each of length one, or zero
};

}  // namespace gleaner
