#include "common/train/wide/wide_index.hpp"

#include <algorithm>

#include "common/train/exact_top.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kBlockNeurons = 4096;  // their scores stay in the first cache level

}  // namespace

WideIndex::WideIndex(std::uint32_t features, std::span<const WideShard* const> shards)
    : numbers_(features), first_neuron_(shards.front()->neurons().begin) {
  for (const WideShard* shard : shards) {
    for (std::uint32_t n = 0; n < shard->neurons().size(); ++n) numbers_.add(shard->features(n));
  }
  numbers_.number();
  begins_.assign(numbers_.count() + std::size_t{2}, 0);
  for (const WideShard* shard : shards) {
    for (std::uint32_t n = 0; n < shard->neurons().size(); ++n) {
      for (const std::uint32_t feature : shard->features(n)) ++begins_[numbers_.of(feature) + 2];
    }
  }
  for (std::size_t i = 2; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  postings_.resize(begins_.back());
  // Placing a feature's postings moves the entry after its own from their begin to their end.
  for (const WideShard* shard : shards) {
    for (std::uint32_t n = 0; n < shard->neurons().size(); ++n) {
      const std::span<const std::uint32_t> own = shard->features(n);
      for (std::size_t i = 0; i < own.size(); ++i) {
        postings_[begins_[numbers_.of(own[i]) + 1]++] = {neurons(), shard->weights(n)[i]};
      }
      biases_.push_back(shard->bias(n));
    }
  }
  begins_.pop_back();
}

// Neurons are scored block by block. Each feature's postings are read on from the block before.
void WideIndex::top(const ExampleView& example, std::span<ScoredNeuron> best,
                    Scratch& scratch) const {
  scratch.lists.clear();
  for (std::size_t k = 0; k < example.features.size(); ++k) {
    if (!numbers_.has(example.features[k])) continue;
    const std::uint32_t number = numbers_.of(example.features[k]);
    scratch.lists.push_back({begins_[number], begins_[number + 1], example.values[k]});
  }
  TopList top(best.data(), static_cast<std::uint32_t>(best.size()));
  for (std::uint32_t first = 0; first < neurons(); first += kBlockNeurons) {
    const std::uint32_t end = std::min(first + kBlockNeurons, neurons());
    scratch.scores.assign(biases_.begin() + first, biases_.begin() + end);
    for (Scratch::List& list : scratch.lists) {
      for (; list.next < list.end && postings_[list.next].neuron < end; ++list.next) {
        const Posting& posting = postings_[list.next];
        scratch.scores[posting.neuron - first] += list.value * posting.weight;
      }
    }
    top.offer(first_neuron_ + first, scratch.scores);
  }
  top.finish();
}

}  // namespace gleaner
