#include "volunteer/train/wide/wide_index.hpp"

#include <algorithm>

#include "volunteer/train/output/top_list.hpp"

namespace gleaner {

void WideIndex::hold(std::span<const WideShard* const> shards) {
  shards_.assign(shards.begin(), shards.end());
  firsts_.assign(1, 0);
  places_.clear();
  for (std::size_t place = 0; place < shards_.size(); ++place) {
    firsts_.push_back(firsts_.back() + shards_[place]->neurons().size());
    places_.resize(firsts_.back(), static_cast<std::uint32_t>(place));
  }
  ends_.assign(std::size_t{config_.features} + 2, 0);
  for (const WideShard* shard : shards_) {
    for (std::uint32_t neuron = 0; neuron < shard->neurons().size(); ++neuron) {
      for (const std::uint32_t feature : shard->features(neuron)) ++ends_[feature + 2];
    }
  }
  for (std::size_t i = 2; i < ends_.size(); ++i) ends_[i] += ends_[i - 1];
  postings_.resize(ends_.back());
  // Each feature's end moves from where its postings begin to where they end.
  for (std::uint32_t all = 0; all < neurons(); ++all) {
    const std::size_t place = places_[all];
    const auto features = shards_[place]->features(all - firsts_[place]);
    for (std::uint32_t i = 0; i < features.size(); ++i) {
      postings_[ends_[features[i] + 1]++] = {all, i};
    }
  }
  ends_.pop_back();
  weights_.clear();
  lists_.clear();
}

void WideIndex::rebuild(std::uint32_t first_feature, Lists& lists) const {
  const std::size_t kept = std::max<std::size_t>(1, config_.feature_list / config_.output_shards);
  const auto before = [](const Entry& a, const Entry& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.neuron < b.neuron);
  };
  lists.entries.clear();
  lists.ends.assign(1, 0);
  const std::uint32_t end = std::min(first_feature + kFeaturesPerChunk, config_.features);
  for (std::uint32_t feature = first_feature; feature < end; ++feature) {
    std::size_t place = ~std::size_t{0};
    std::size_t of_shard = 0;  // where the entries of the shard begin
    for (std::size_t i = ends_[feature]; i < ends_[feature + 1]; ++i) {
      const Entry entry{postings_[i].neuron, listed_weight_of(postings_[i])};
      if (places_[entry.neuron] != place) {
        place = places_[entry.neuron];
        of_shard = lists.entries.size();
      }
      // Written so that a NaN is left out.
      if (!(entry.weight > 0)) continue;
      if (lists.entries.size() - of_shard == kept) {
        if (!before(entry, lists.entries.back())) continue;
        lists.entries.pop_back();
      }
      const auto at =
          std::upper_bound(lists.entries.begin() + static_cast<std::ptrdiff_t>(of_shard),
                           lists.entries.end(), entry, before);
      lists.entries.insert(at, entry);
    }
    lists.ends.push_back(lists.entries.size());
  }
}

void WideIndex::rebuild_lists() {
  lists_.resize((config_.features + kFeaturesPerChunk - 1) / kFeaturesPerChunk);
  pool_.parallel_for(lists_.size(), [this](std::size_t chunk, unsigned /*worker*/) {
    rebuild(static_cast<std::uint32_t>(chunk) * kFeaturesPerChunk, lists_[chunk]);
  });
}

void WideIndex::read_weights() {
  if (weights_.size() == postings_.size()) return;
  weights_.resize(postings_.size());
  constexpr std::size_t kBlock = 65536;
  pool_.parallel_for((postings_.size() + kBlock - 1) / kBlock,
                     [this](std::size_t block, unsigned /*worker*/) {
                       const std::size_t end = std::min(postings_.size(), (block + 1) * kBlock);
                       for (std::size_t i = block * kBlock; i < end; ++i) {
                         weights_[i] = weight_of(postings_[i]);
                       }
                     });
}

void WideIndex::Sums::begin(const WideIndex& index, const ExampleView& example) {
  index_ = &index;
  lists_.clear();
  for (std::size_t k = 0; k < example.features.size(); ++k) {
    const std::size_t begin = index.ends_[example.features[k]];
    const std::size_t end = index.ends_[example.features[k] + std::size_t{1}];
    if (begin < end) lists_.push_back({begin, end, example.values[k]});
  }
}

std::span<const float> WideIndex::Sums::add(std::span<const float> biases, std::uint32_t first,
                                            std::uint32_t end) {
  scores_.assign(biases.begin() + first, biases.begin() + end);
  for (List& list : lists_) {
    std::size_t at = list.next;
    while (at < list.end && index_->postings_[at].neuron < first) ++at;
    for (; at < list.end && index_->postings_[at].neuron < end; ++at) {
      scores_[index_->postings_[at].neuron - first] += list.value * index_->weights_[at];
    }
    list.next = at;
  }
  return scores_;
}

std::vector<ScoredNeuron> WideIndex::exact_top(std::span<const std::size_t> places,
                                               std::span<const ExampleView> examples,
                                               std::uint32_t top_k) {
  read_weights();
  std::vector<float> biases;
  for (const WideShard* shard : shards_) {
    for (std::uint32_t n = 0; n < shard->neurons().size(); ++n) biases.push_back(shard->bias(n));
  }
  std::uint64_t asked = 0;
  for (const std::size_t place : places) asked += shards_[place]->neurons().size();
  const auto entries = static_cast<std::uint32_t>(std::min<std::uint64_t>(top_k, asked));
  std::vector<ScoredNeuron> best(examples.size() * entries);
  std::vector<Sums> sums(pool_.threads());
  pool_.parallel_for(examples.size(), [&](std::size_t e, unsigned worker) {
    TopList top(best.data() + e * entries, entries);
    sums[worker].begin(*this, examples[e]);
    for (std::size_t begin = 0, end = 0; begin < places.size(); begin = end) {
      // Shards that follow each other, as many as fit the first cache level.
      for (end = begin + 1; end < places.size() && places[end] == places[end - 1] + 1 &&
                            firsts_[places[end] + 1] - firsts_[places[begin]] <= kBlockNeurons;) {
        ++end;
      }
      const std::uint32_t first = firsts_[places[begin]];
      const std::span<const float> scores =
          sums[worker].add(biases, first, firsts_[places[end - 1] + 1]);
      for (std::size_t i = begin; i < end; ++i) {
        top.offer(shards_[places[i]]->neurons().begin,
                  scores.subspan(firsts_[places[i]] - first,
                                 firsts_[places[i] + 1] - firsts_[places[i]]));
      }
    }
  });
  return best;
}

std::uint64_t WideIndex::memory_bytes() const {
  std::uint64_t bytes =
      places_.capacity() * sizeof(std::uint32_t) + ends_.capacity() * sizeof(std::size_t) +
      postings_.capacity() * sizeof(Posting) + weights_.capacity() * sizeof(float);
  for (const Lists& lists : lists_) {
    bytes += lists.ends.capacity() * sizeof(std::size_t) + lists.entries.capacity() * sizeof(Entry);
  }
  return bytes;
}

}  // namespace gleaner
