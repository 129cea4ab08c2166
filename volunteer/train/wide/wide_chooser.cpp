#include "volunteer/train/wide/wide_chooser.hpp"

#include <algorithm>

#include "common/counter_random.hpp"

namespace gleaner {

void WideChooser::add(const WideIndex& index, std::uint32_t neuron, std::uint32_t example,
                      bool is_true) {
  if (last_turns_[neuron] == turn_) return;
  last_turns_[neuron] = turn_;
  const std::uint32_t place = index.place_of(neuron);
  WidePair pair;
  pair.neuron = neuron - index.first_neuron(place);
  pair.example = example & 0x7fffffffU;
  pair.is_true = is_true ? 1 : 0;
  pairs_[place].push_back(pair);
}

void WideChooser::add_labels(const WideBatch& batch, const WideIndex& index, std::uint32_t of,
                             std::uint32_t example, bool is_true) {
  std::size_t place = 0;
  for (std::uint32_t i = batch.positives->offsets[of]; i < batch.positives->offsets[of + 1]; ++i) {
    // Neurons and shards both ascend, and every neuron is in one of these.
    const std::uint32_t neuron = batch.positives->neurons[i];
    while (index.shards()[place]->neurons().end <= neuron) ++place;
    add(index, index.first_neuron(place) + neuron - index.shards()[place]->neurons().begin, example,
        is_true);
  }
}

void WideChooser::add_listed(const WideIndex& index, std::span<const std::uint8_t> is_asked,
                             const ExampleView& view, std::uint32_t example) {
  const std::size_t kept = std::max<std::size_t>(1, config_.active_cap / config_.output_shards);
  met_.clear();
  for (std::size_t k = 0; k < view.features.size(); ++k) {
    if (!(view.values[k] > 0)) continue;
    for (const WideIndex::Entry& entry : index.list(view.features[k])) {
      float& score = scores_[entry.neuron];
      if (score == 0) met_.push_back(entry.neuron);
      score += view.values[k] * entry.weight;
    }
  }
  best_.resize(index.shards().size() * kept);
  counts_.assign(index.shards().size(), 0);
  const auto before = [](const Candidate& a, const Candidate& b) {
    return a.score > b.score || (a.score == b.score && a.neuron < b.neuron);
  };
  for (const std::uint32_t neuron : met_) {
    const Candidate candidate{neuron, scores_[neuron]};
    scores_[neuron] = 0;
    const std::uint32_t place = index.place_of(neuron);
    if (is_asked[place] == 0 || last_turns_[neuron] == turn_) continue;
    Candidate* const own = best_.data() + place * kept;
    std::size_t at = counts_[place];
    if (at == kept) {
      if (!before(candidate, own[kept - 1])) continue;
      --at;
    } else {
      ++counts_[place];
    }
    for (; at > 0 && before(candidate, own[at - 1]); --at) own[at] = own[at - 1];
    own[at] = candidate;
  }
  for (std::size_t place = 0; place < counts_.size(); ++place) {
    for (std::size_t i = 0; i < counts_[place]; ++i) {
      add(index, best_[place * kept + i].neuron, example, false);
    }
  }
}

void WideChooser::add_all(const WideIndex& index, std::span<const std::uint8_t> is_asked,
                          std::uint32_t example) {
  for (std::size_t place = 0; place < index.shards().size(); ++place) {
    if (is_asked[place] == 0) continue;
    for (std::uint32_t n = index.first_neuron(place); n < index.first_neuron(place + 1); ++n) {
      add(index, n, example, false);
    }
  }
}

void WideChooser::choose(const WideBatch& batch, const WideIndex& index,
                         std::span<const std::uint8_t> is_asked, ExampleRange examples) {
  pairs_.resize(index.shards().size());
  for (std::vector<WidePair>& of_shard : pairs_) of_shard.clear();
  if (last_turns_.size() != index.neurons()) {
    last_turns_.assign(index.neurons(), 0);
    scores_.assign(index.neurons(), 0.0F);
  }
  for (std::uint32_t example = examples.begin; example < examples.end; ++example) {
    ++turn_;
    add_labels(batch, index, example, example, true);
    if (config_.sampling == Sampling::kAll) {
      add_all(index, is_asked, example);
      continue;
    }
    if (config_.sampling == Sampling::kLsh) {
      add_listed(index, is_asked, batch.examples[example], example);
    }
    for (std::uint32_t draw = 0; draw < config_.random_negatives; ++draw) {
      const std::uint64_t other =
          below(counter_random(config_.seed, Purpose::kRandomNegative, batch.batch, example, draw),
                batch.examples.size());
      add_labels(batch, index, static_cast<std::uint32_t>(other), example, false);
    }
  }
}

std::uint64_t WideChooser::memory_bytes() const {
  std::uint64_t bytes =
      last_turns_.capacity() * sizeof(std::uint64_t) + scores_.capacity() * sizeof(float) +
      met_.capacity() * sizeof(std::uint32_t) + best_.capacity() * sizeof(Candidate);
  for (const std::vector<WidePair>& of_shard : pairs_) {
    bytes += of_shard.capacity() * sizeof(WidePair);
  }
  return bytes;
}

}  // namespace gleaner
