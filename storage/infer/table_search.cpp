#include "storage/infer/table_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/limits.hpp"
#include "storage/keep/model_rows.hpp"

namespace gleaner {
namespace {

// Rows are fetched this number of rows before their use: they are scattered in memory.
constexpr std::size_t kPrefetchRows = 8;
constexpr std::size_t kCacheLineFloats = kCacheLine / sizeof(float);

}  // namespace

TableSearch::TableSearch(StoredModel& model, std::uint32_t candidates)
    : model_(model),
      kernels_(default_kernels()),
      config_(model.config()),
      map_(config_),
      candidates_(candidates),
      sim_hash_(config_, kernels_),
      biases_(config_.labels),
      codes_(config_.tables, config_.hash_bits, config_.labels),
      tables_(config_.tables, config_.hash_bits),
      is_frequent_(config_.labels),
      scratch_(model.pool().threads()) {
  weights_.resize(std::size_t{config_.labels} * config_.hidden);
  for (Scratch& scratch : scratch_) {
    scratch.codes.resize(config_.tables);
    scratch.hidden.resize(config_.hidden);
    scratch.counts.resize(config_.labels);
  }
}

Result<std::unique_ptr<TableSearch>> TableSearch::open(StoredModel& model,
                                                       std::uint32_t candidates) {
  if (ShardMap(model.config()).tables() == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "the run samples without hash tables: it can only be asked exactly"};
  }
  std::unique_ptr<TableSearch> search(new TableSearch(model, candidates));
  if (auto loaded = search->load(); !loaded) return loaded.error();
  search->choose_frequent();
  return search;
}

Result<void> TableSearch::load() {
  HashScratch hash;
  std::vector<std::uint32_t> codes(config_.tables);
  bool is_sound = true;
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    const std::uint32_t first = map_.neurons(ShardId{s}).begin;
    auto visited = visit_model_rows(model_.run(), ShardId{s}, [&](const ModelRow& row) {
      const std::uint32_t neuron = first + row.row;
      float* const weights = weights_.data() + std::size_t{neuron} * config_.hidden;
      std::copy(row.values.begin(), row.values.end() - 1, weights);
      biases_[neuron] = row.values.back();
      // The tables also have rows that training never touched; their codes are computed here.
      if (row.is_stored) {
        std::ranges::copy(row.codes, codes.begin());
      } else {
        const float* const rows[] = {weights};
        sim_hash_.hash_rows(rows, codes, hash);
      }
      for (const std::uint32_t code : codes) is_sound &= code >> config_.hash_bits == 0;
      if (is_sound) codes_.write({&neuron, 1}, codes);
    });
    if (!visited) return visited;
  }
  if (!is_sound) {
    return Error{ErrorCode::kCorrupt,
                 "a table entry is beyond the tables' buckets: gleaner verify names it"};
  }
  // All neurons form a single shard here, so that row numbers are neuron numbers.
  const ShardCodes* const all[] = {&codes_};
  tables_.hold(all);
  tables_.rebuild();
  return {};
}

void TableSearch::choose_frequent() {
  std::vector<std::uint32_t> counts;  // by neuron
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    const std::vector<std::uint32_t> own = model_.run().label_counts(ShardId{s});
    counts.insert(counts.end(), own.begin(), own.end());
  }
  frequent_.resize(counts.size());
  std::iota(frequent_.begin(), frequent_.end(), 0U);
  const std::size_t kept = std::min<std::size_t>(candidates_, frequent_.size());
  std::ranges::partial_sort(frequent_, frequent_.begin() + static_cast<std::ptrdiff_t>(kept),
                            [&](std::uint32_t left, std::uint32_t right) {
                              if (counts[left] != counts[right]) {
                                return counts[left] > counts[right];
                              }
                              return left < right;
                            });
  frequent_.resize(kept);
  std::ranges::sort(frequent_);
  for (const std::uint32_t neuron : frequent_) is_frequent_[neuron] = 1;
}

void TableSearch::propose(std::span<const std::uint8_t> hidden, Scratch& scratch) const {
  sim_hash_.hash_query(hidden, scratch.codes, scratch.hash);
  scratch.proposed.clear();
  tables_.visit([&](const auto& packed) {
    for (std::uint32_t table = 0; table < config_.tables; ++table) {
      for (const std::uint32_t neuron : packed.bucket(table, scratch.codes[table])) {
        if (scratch.counts[neuron]++ == 0) scratch.proposed.push_back(neuron);
      }
    }
  });
}

void TableSearch::select(Scratch& scratch) const {
  std::vector<std::uint32_t>& by_count = scratch.by_count;
  by_count.assign(config_.tables + 1, 0);
  for (const std::uint32_t neuron : scratch.proposed) {
    if (is_frequent_[neuron] == 0) ++by_count[scratch.counts[neuron]];
  }
  // Neurons with a larger count are all kept; `taken` counts them.
  std::uint32_t taken = 0;
  std::uint32_t least = config_.tables;
  while (least > 1 && taken + by_count[least] <= candidates_) taken += by_count[least--];
  std::uint32_t of_least = candidates_ - taken;
  std::size_t kept = 0;
  for (const std::uint32_t neuron : scratch.proposed) {
    const std::uint32_t count = std::exchange(scratch.counts[neuron], std::uint16_t{0});
    if (is_frequent_[neuron] != 0 || count < least || (count == least && of_least == 0)) continue;
    if (count == least) --of_least;
    scratch.proposed[kept++] = neuron;
  }
  scratch.proposed.resize(kept);
}

void TableSearch::score(std::span<const std::uint32_t> neurons, Scratch& scratch) const {
  const std::size_t width = config_.hidden;
  for (std::size_t i = 0; i < neurons.size(); ++i) {
    if (i + kPrefetchRows < neurons.size()) {
      const float* const ahead = weights_.data() + std::size_t{neurons[i + kPrefetchRows]} * width;
      for (std::size_t f = 0; f < width; f += kCacheLineFloats) __builtin_prefetch(ahead + f);
    }
    const float* const weights = weights_.data() + std::size_t{neurons[i]} * width;
    const float logit = kernels_.dot(weights, scratch.hidden.data(), width) + biases_[neurons[i]];
    scratch.scored.push_back({neurons[i], logit});
  }
}

void TableSearch::search(const QuantizedActivations& codes, std::size_t example,
                         std::span<ScoredLabel> best, Scratch& scratch) const {
  const std::size_t width = config_.hidden;
  const std::uint8_t* const own = codes.codes.data() + example * width;
  propose({own, width}, scratch);
  select(scratch);
  kernels_.dequantise(codes.scales[example], own, scratch.hidden.data(), width);
  scratch.scored.clear();
  score(scratch.proposed, scratch);
  score(frequent_, scratch);
  const std::size_t kept = std::min(best.size(), scratch.scored.size());
  std::ranges::partial_sort(scratch.scored, scratch.scored.begin() + static_cast<long>(kept),
                            [](const ScoredLabel& left, const ScoredLabel& right) {
                              if (left.logit != right.logit) return left.logit > right.logit;
                              return left.label < right.label;
                            });
  for (std::size_t i = 0; i < best.size(); ++i) {
    best[i] = {0, -std::numeric_limits<float>::infinity()};
    if (i < kept)
      best[i] = {map_.label_of_neuron(scratch.scored[i].label), scratch.scored[i].logit};
  }
}

std::vector<ScoredLabel> TableSearch::top(const QuantizedActivations& codes, std::uint32_t top_k) {
  const std::size_t entries = model_.entries(top_k);
  std::vector<ScoredLabel> best(codes.examples * entries);
  model_.pool().parallel_for(codes.examples, [&](std::size_t example, unsigned worker) {
    search(codes, example, std::span(best).subspan(example * entries, entries), scratch_[worker]);
  });
  return best;
}

}  // namespace gleaner
