#include "volunteer/train/wide/wide_layer.hpp"

#include <algorithm>
#include <utility>

#include "common/check.hpp"

namespace gleaner {

WideLayer::WideLayer(const ModelConfig& config, ThreadPool& pool)
    : pool_(pool),
      index_(config, pool),
      choosers_(pool.threads(), WideChooser(config)),
      scratch_(pool.threads()) {}

void WideLayer::hold(std::span<WideShard* const> shards) {
  index_.hold(std::vector<const WideShard*>(shards.begin(), shards.end()));
  are_lists_stale_ = true;
}

void WideLayer::ask(std::span<WideShard* const> shards) {
  places_.clear();
  is_asked_.assign(index_.shards().size(), 0);
  auto next = shards.begin();
  for (std::size_t place = 0; place < is_asked_.size() && next != shards.end(); ++place) {
    if (index_.shards()[place] != *next) continue;
    is_asked_[place] = 1;
    places_.push_back(place);
    ++next;
  }
  GLEANER_CHECK(next == shards.end());
}

void WideLayer::train(const WideBatch& batch, std::span<WideShard* const> shards,
                      std::span<ShardOutcome> outcomes) {
  if (std::exchange(are_lists_stale_, false)) index_.rebuild_lists();
  ask(shards);
  index_.mark_weights_changed();
  const std::size_t parts = choosers_.size();
  const auto cut = [&](std::size_t part) {
    return static_cast<std::uint32_t>(batch.examples.size() * part / parts);
  };
  pool_.parallel_for(parts, [&](std::size_t part, unsigned /*worker*/) {
    choosers_[part].choose(batch, index_, is_asked_, {cut(part), cut(part + 1)});
  });
  pool_.parallel_for(shards.size(), [&](std::size_t i, unsigned worker) {
    std::vector<WidePair>& pairs = scratch_[worker].pairs;
    pairs.clear();
    for (const WideChooser& chooser : choosers_) {
      const std::span<const WidePair> some = chooser.pairs(places_[i]);
      pairs.insert(pairs.end(), some.begin(), some.end());
    }
    std::ranges::sort(pairs, [](const WidePair& a, const WidePair& b) {
      return a.neuron < b.neuron || (a.neuron == b.neuron && a.example < b.example);
    });
    // Not in place, where other threads' outcomes lie beside it.
    ShardOutcome outcome{.shard = shards[i]->id()};
    shards[i]->train(pairs, batch.examples, batch.rate, scratch_[worker], outcome);
    outcomes[i] = outcome;
  });
}

std::vector<ScoredNeuron> WideLayer::exact_top(std::span<WideShard* const> shards,
                                               std::span<const ExampleView> examples,
                                               std::uint32_t top_k) {
  ask(shards);
  return index_.exact_top(places_, examples, top_k);
}

std::uint64_t WideLayer::memory_bytes() const {
  std::uint64_t bytes = index_.memory_bytes();
  for (const WideChooser& chooser : choosers_) bytes += chooser.memory_bytes();
  for (const WideScratch& scratch : scratch_) {
    bytes += scratch.places.capacity() * sizeof(std::uint32_t) +
             scratch.pairs.capacity() * sizeof(WidePair);
  }
  return bytes;
}

}  // namespace gleaner
