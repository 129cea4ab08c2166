#include "common/train/wide_layer.hpp"

#include <algorithm>
#include <utility>

#include "common/counter_random.hpp"
#include "common/result.hpp"
#include "common/train/exact_top.hpp"

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
  posting_neurons_ = {};
  indices_ = {};
  weights_ = {};
  lists_.clear();
  posting_neurons_.resize(ends_.back());
  indices_.resize(ends_.back());
  // Each feature's end moves from where its postings begin to where they end.
  for (std::uint32_t all = 0; all < neurons(); ++all) {
    const std::size_t place = places_[all];
    const auto features = shards_[place]->features(all - firsts_[place]);
    for (std::uint32_t i = 0; i < features.size(); ++i) {
      const std::size_t posting = ends_[features[i] + 1]++;
      posting_neurons_[posting] = all;
      indices_[posting] = static_cast<std::uint16_t>(std::min<std::uint32_t>(i, kFar));
    }
  }
  ends_.pop_back();
}

std::uint32_t WideIndex::far_index_of(std::size_t posting) const {
  const auto feature = std::ranges::upper_bound(ends_, posting) - ends_.begin() - 1;
  const std::uint32_t neuron = posting_neurons_[posting];
  const std::size_t place = places_[neuron];
  const auto features = shards_[place]->features(neuron - firsts_[place]);
  const auto at = std::ranges::lower_bound(features, static_cast<std::uint32_t>(feature));
  return static_cast<std::uint32_t>(at - features.begin());
}

void WideIndex::rebuild(std::uint32_t first_feature, std::vector<Entry>& entries,
                        Lists& lists) const {
  const std::size_t kept = std::max<std::size_t>(1, config_.feature_list / config_.output_shards);
  const auto before = [](const Entry& a, const Entry& b) {
    return a.weight > b.weight || (a.weight == b.weight && a.neuron < b.neuron);
  };
  lists.entries = {};
  entries.clear();
  lists.ends.assign(1, 0);
  const std::uint32_t end = std::min(first_feature + kFeaturesPerChunk, config_.features);
  for (std::uint32_t feature = first_feature; feature < end; ++feature) {
    std::size_t place = ~std::size_t{0};
    std::size_t of_shard = 0;  // where the entries of the shard begin
    for (std::size_t i = ends_[feature]; i < ends_[feature + 1]; ++i) {
      const Entry entry{posting_neurons_[i], listed_weight_of(i)};
      if (places_[entry.neuron] != place) {
        place = places_[entry.neuron];
        of_shard = entries.size();
      }
      // Written so that a NaN is left out.
      if (!(entry.weight > 0)) continue;
      if (entries.size() - of_shard == kept) {
        if (!before(entry, entries.back())) continue;
        entries.pop_back();
      }
      const auto at = std::upper_bound(entries.begin() + static_cast<std::ptrdiff_t>(of_shard),
                                       entries.end(), entry, before);
      entries.insert(at, entry);
    }
    lists.ends.push_back(static_cast<std::uint32_t>(entries.size()));
  }
  // No more room than for them.
  lists.entries.assign(entries.begin(), entries.end());
}

void WideIndex::rebuild_lists() {
  lists_.resize((config_.features + kFeaturesPerChunk - 1) / kFeaturesPerChunk);
  std::vector<std::vector<Entry>> entries(pool_.threads());
  pool_.parallel_for(lists_.size(), [&](std::size_t chunk, unsigned worker) {
    rebuild(static_cast<std::uint32_t>(chunk) * kFeaturesPerChunk, entries[worker], lists_[chunk]);
  });
}

void WideIndex::read_weights() {
  if (weights_.size() == posting_neurons_.size()) return;
  weights_.resize(posting_neurons_.size());
  constexpr std::size_t kBlock = 65536;
  pool_.parallel_for((posting_neurons_.size() + kBlock - 1) / kBlock, [this](std::size_t block,
                                                                             unsigned /*worker*/) {
    const std::size_t end = std::min(posting_neurons_.size(), (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) {
      weights_[i] = weight_of(i);
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
    while (at < list.end && index_->posting_neurons_[at] < first) ++at;
    for (; at < list.end && index_->posting_neurons_[at] < end; ++at) {
      scores_[index_->posting_neurons_[at] - first] += list.value * index_->weights_[at];
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
      posting_neurons_.capacity() * (sizeof(std::uint32_t) + sizeof(std::uint16_t)) +
      weights_.capacity() * sizeof(float);
  for (const Lists& lists : lists_) {
    bytes +=
        lists.ends.capacity() * sizeof(std::uint32_t) + lists.entries.capacity() * sizeof(Entry);
  }
  return bytes;
}

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
    turn_ = 0;
    scores_.assign(index.neurons(), 0.0F);
  }
  for (std::uint32_t example = examples.begin; example < examples.end; ++example) {
    if (++turn_ == 0) {
      std::ranges::fill(last_turns_, 0);
      turn_ = 1;
    }
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
      last_turns_.capacity() * sizeof(std::uint32_t) + scores_.capacity() * sizeof(float) +
      met_.capacity() * sizeof(std::uint32_t) + best_.capacity() * sizeof(Candidate);
  for (const std::vector<WidePair>& of_shard : pairs_) {
    bytes += of_shard.capacity() * sizeof(WidePair);
  }
  return bytes;
}

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
