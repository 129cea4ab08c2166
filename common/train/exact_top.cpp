#include "common/train/exact_top.hpp"

#include <algorithm>

#include "common/train/aligned_vector.hpp"

namespace gleaner {
namespace {

// The hidden values of a block's examples stay in the first cache level while all rows pass; so do
// the scores of a block's rows.
constexpr std::size_t kBlockExamples = 32;
constexpr std::size_t kScoredRows = 64;

// h = scale * code of every example.
AlignedVector<float> dequantise(const Kernels& kernels, const QuantizedActivations& codes) {
  AlignedVector<float> hidden(codes.codes.size());
  for (std::size_t e = 0; e < codes.examples; ++e) {
    const std::size_t first = e * codes.hidden;
    kernels.dequantise(codes.scales[e], codes.codes.data() + first, hidden.data() + first,
                       codes.hidden);
  }
  return hidden;
}

}  // namespace

std::uint32_t exact_top_entries(std::span<const OutputShard* const> shards, std::uint32_t top_k) {
  std::uint64_t neurons = 0;
  for (const OutputShard* shard : shards) neurons += shard->rows().rows();
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(top_k, neurons));
}

std::vector<ScoredNeuron> exact_top(std::span<const OutputShard* const> shards,
                                    const QuantizedActivations& codes, std::uint32_t top_k,
                                    const Kernels& kernels, ThreadPool& pool) {
  const std::uint32_t entries = exact_top_entries(shards, top_k);
  std::vector<ScoredNeuron> best(std::size_t{codes.examples} * entries);
  if (best.empty()) return best;
  const AlignedVector<float> hidden = dequantise(kernels, codes);
  const std::size_t blocks = (codes.examples + kBlockExamples - 1) / kBlockExamples;
  pool.parallel_for(blocks, [&](std::size_t index, unsigned /*worker*/) {
    const std::size_t first = index * kBlockExamples;
    const std::size_t examples = std::min(kBlockExamples, codes.examples - first);
    AlignedVector<float> scores(kBlockExamples * kScoredRows);
    std::vector<TopList> tops;
    for (std::size_t e = 0; e < examples; ++e) {
      tops.emplace_back(best.data() + (first + e) * entries, entries);
    }
    for (const OutputShard* shard : shards) {
      const OutputRows& rows = shard->rows();
      for (std::uint32_t row = 0; row < rows.rows(); row += kScoredRows) {
        const std::size_t count = std::min<std::size_t>(kScoredRows, rows.rows() - row);
        kernels.score_rows({.width = codes.hidden,
                            .weights = rows.weights(row),
                            .biases = rows.biases() + row,
                            .rows = count,
                            .hidden = hidden.data() + first * codes.hidden,
                            .examples = examples,
                            .scores = scores.data(),
                            .score_stride = kScoredRows});
        for (std::size_t e = 0; e < examples; ++e) {
          tops[e].offer(shard->neurons().begin + row,
                        std::span<const float>(scores).subspan(e * kScoredRows, count));
        }
      }
    }
    for (TopList& top : tops) top.finish();
  });
  return best;
}

}  // namespace gleaner
