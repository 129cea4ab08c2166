// The training points that vote beside a network: a point's nearest ones (neighbours) or, where
// points bear fewer than two labels each, so that a label is what its points are about, what labels
// are about (label_documents).
#pragma once

#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "common/thread_pool.hpp"
#include "master/label_documents.hpp"
#include "master/label_share.hpp"
#include "master/neighbours.hpp"
#include "volunteer/train/input_layer.hpp"

namespace gleaner {

class Voters {
 public:
  // Of the nearest points `count` vote.
  Voters(const TrainingPoints& points, std::uint32_t count);

  [[nodiscard]] std::uint64_t points() const { return points_; }

  // Whether votes depend on the network's input layer.
  [[nodiscard]] bool are_documents() const {
    return std::holds_alternative<LabelDocuments>(voters_);
  }

  // Must come before votes() of documents, and again when the layer has changed.
  void embed(InputLayer& layer);

  // By example: labels that have votes, by descending share, of equal shares the smaller first.
  // `layer`: the one of embed(); where the nearest points vote it may be null.
  [[nodiscard]] std::vector<std::vector<LabelShare>> votes(std::span<const ExampleView> examples,
                                                           InputLayer* layer,
                                                           ThreadPool& pool) const;

 private:
  std::uint64_t points_;
  std::variant<Neighbours, LabelDocuments> voters_;
};

}  // namespace gleaner
