// Floors: multiply-adds against the peak of those, bytes against the peak of the level that the
// working set lies in; whichever takes longer.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "common/counter_random.hpp"
#include "common/limits.hpp"
#include "common/model/model_config.hpp"
#include "common/train/aligned_vector.hpp"
#include "common/train/kernels.hpp"
#include "common/train/sim_hash.hpp"
#include "tests/bench/machine/bench_loops.hpp"
#include "tests/bench/machine/bench_timing.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kKernelExamples = 128;
constexpr std::uint32_t kTables = 50;
constexpr std::uint32_t kHashBits = 8;

AlignedVector<float> random_floats(std::size_t count, float scale) {
  AlignedVector<float> values(count);
  Rng rng(1, Purpose::kTest);
  for (float& value : values) value = scale * signed_unit(rng.next());
  return values;
}

// About half of a ReLU layer is off.
std::vector<std::uint8_t> random_codes(std::size_t count) {
  std::vector<std::uint8_t> codes(count);
  Rng rng(2, Purpose::kTest);
  for (std::uint8_t& code : codes) {
    code = rng.chance(1, 2) ? static_cast<std::uint8_t>(rng.next_below(128)) : std::uint8_t{0};
  }
  return codes;
}

struct Floor {
  double seconds;
  std::string bound;
};

Floor later(double flops, double flops_per_second, double bytes, double bytes_per_second,
            const char* level) {
  const double arithmetic = flops / flops_per_second;
  const double traffic = bytes / bytes_per_second;
  if (arithmetic > traffic) return {arithmetic, "multiply-adds"};
  return {traffic, level};
}

BenchLine bench_score(const Kernels& kernels, const MachinePeaks& peaks, const BenchShape& shape) {
  constexpr std::size_t kRows = 64;
  constexpr std::size_t kAtOnce = 32;
  const AlignedVector<float> rows = random_floats(kRows * shape.hidden, 0.1F);
  const AlignedVector<float> hidden = random_floats(kAtOnce * shape.hidden, 1.0F);
  const std::vector<float> biases(kRows, 0.0F);
  std::vector<float> scores(kRows * kAtOnce);
  const double seconds = best_seconds(shape.budget, [&] {
    for (int repeat = 0; repeat < 16; ++repeat) {
      kernels.score_rows({shape.hidden, rows.data(), biases.data(), kRows, hidden.data(), kAtOnce,
                          scores.data(), kRows});
    }
  });
  return {"score, in blocks", "neuron and example", seconds / (16.0 * kRows * kAtOnce),
          2.0 * shape.hidden / peaks.flops_per_second, "multiply-adds"};
}

std::vector<std::uint32_t> all_rows(std::size_t count) {
  std::vector<std::uint32_t> rows(count);
  std::iota(rows.begin(), rows.end(), 0u);
  return rows;
}

// Every row of a layer as large as the level, or every one picked, is visited `visits` times in a
// call.
BenchLine bench_train(const Kernels& kernels, const MachinePeaks& peaks, const BenchShape& shape,
                      std::size_t visits, std::size_t level) {
  const std::size_t width = shape.hidden;
  const std::size_t layer_rows = peaks.memory[level].bytes / (width * sizeof(float));
  AlignedVector<float> weights = random_floats(layer_rows * width, 0.1F);
  std::vector<float> biases(layer_rows, -5.0F);
  std::vector<float> states(layer_rows, 0.1F);
  const std::vector<std::uint32_t> rows =
      level == kPickedRows ? picked_rows(layer_rows) : all_rows(layer_rows);
  const std::vector<std::uint8_t> codes = random_codes(kKernelExamples * width);
  const std::vector<float> scales(kKernelExamples, 0.01F);
  AlignedVector<std::uint32_t> gradient_sums(kKernelExamples * width);
  constexpr std::size_t kBlock = 32;
  std::vector<std::size_t> ends(kBlock);
  std::vector<ActivePair> pairs(kBlock * visits + kLanes);
  for (std::size_t r = 0; r < kBlock; ++r) {
    ends[r] = (r + 1) * visits;
    for (std::size_t v = 0; v < visits; ++v) {
      const std::size_t example =
          (v * (kKernelExamples / visits) + r * 37 % (kKernelExamples / visits));
      pairs[r * visits + v] = static_cast<ActivePair>(example % kKernelExamples);
    }
  }
  std::vector<float> logits(pairs.size());
  std::vector<float> deltas(pairs.size());
  AlignedVector<float> gradients(kRowsPerStep * width);
  RowsTraining work{.width = width,
                    .weights = weights.data(),
                    .biases = biases.data(),
                    .states = states.data(),
                    .row_count = kBlock,
                    .pair_ends = ends.data(),
                    .pairs = pairs.data(),
                    .codes = codes.data(),
                    .scales = scales.data(),
                    .gradient_sums = gradient_sums.data(),
                    .gradient_magic = gradient_magic(-8),
                    .logits = logits.data(),
                    .deltas = deltas.data(),
                    .gradients = gradients.data()};
  const RmsRule rule{1e-6F, 0.999F, 1.0F - 0.999F, kFirstFraction, 1e-8F};
  const std::size_t blocks = rows.size() / kBlock;
  const double seconds = best_seconds(shape.budget, [&] {
    for (std::size_t block = 0; block < blocks; ++block) {
      work.rows = rows.data() + block * kBlock;
      work.rows_after = (blocks - block - 1) * kBlock;
      (void)kernels.losses[0].train_rows(work, rule);
    }
  });
  const auto share = static_cast<double>(visits);
  const double each = seconds / (static_cast<double>(blocks * kBlock) * share);
  // A visit's dh is in the second level, its row where the rows are.
  const auto row_bytes = static_cast<double>(width * sizeof(float));
  const double traffic = row_bytes / peaks.memory[kSecondLevel].update_per_second +
                         row_bytes / share / peaks.memory[level].update_per_second;
  const Floor floor = later(6.0 * static_cast<double>(width), peaks.flops_per_second, traffic, 1.0,
                            peaks.memory[level].name);
  return {fmt::format("train rows, {} visit{} each, rows in {}", visits, visits == 1 ? "" : "s",
                      peaks.memory[level].name),
          "visit", each, floor.seconds, floor.bound};
}

struct HashTimes {
  double row;
  double query;
};

HashTimes time_hashing(const Kernels& kernels, const BenchShape& shape) {
  ModelConfig config;
  config.hidden = shape.hidden;
  config.tables = kTables;
  config.hash_bits = kHashBits;
  const SimHash sim_hash(config, kernels);
  const AlignedVector<float> rows = random_floats(kHashRowsMax * shape.hidden, 0.1F);
  const std::vector<std::uint8_t> queries = random_codes(kHashRowsMax * shape.hidden);
  std::vector<const float*> pointers(kHashRowsMax);
  for (std::size_t r = 0; r < kHashRowsMax; ++r) pointers[r] = rows.data() + r * shape.hidden;
  std::vector<std::uint32_t> codes(kHashRowsMax * kTables);
  HashScratch scratch;
  constexpr double kCalls = 16;
  const double row_seconds = best_seconds(shape.budget, [&] {
    for (int call = 0; call < static_cast<int>(kCalls); ++call) {
      sim_hash.hash_rows(pointers, codes, scratch);
    }
  });
  const double query_seconds = best_seconds(shape.budget, [&] {
    for (std::size_t q = 0; q < kHashRowsMax; ++q) {
      sim_hash.hash_query(std::span(queries).subspan(q * shape.hidden, shape.hidden),
                          std::span(codes).first(kTables), scratch);
    }
  });
  const auto at_once = static_cast<double>(kHashRowsMax);
  return {row_seconds / (kCalls * at_once), query_seconds / at_once};
}

}  // namespace

std::vector<BenchLine> bench_hashing(const MachinePeaks& peaks, const BenchShape& shape) {
  const HashTimes times = time_hashing(kernels_for(peaks.level), shape);
  const std::size_t block = std::bit_ceil(std::max<std::size_t>(shape.hidden, 32));
  const std::size_t blocks = (kTables * kHashBits + block - 1) / block;
  // An addition occupies the unit of a multiply-add.
  const double additions = static_cast<double>(blocks * block * (std::bit_width(block) - 1));
  return {{fmt::format("hash a row, {} tables of {} bits", kTables, kHashBits), "row", times.row,
           2.0 * additions / peaks.flops_per_second, "additions"},
          {"hash a query", "query", times.query, 0, ""}};
}

std::vector<BenchLine> bench_kernels(const MachinePeaks& peaks, const BenchShape& shape) {
  const Kernels& kernels = kernels_for(peaks.level);
  std::vector<BenchLine> lines;
  lines.push_back(bench_train(kernels, peaks, shape, 16, kSecondLevel));
  lines.push_back(bench_train(kernels, peaks, shape, 1, kSecondLevel));
  lines.push_back(bench_train(kernels, peaks, shape, 3, kPickedRows));
  lines.push_back(bench_train(kernels, peaks, shape, 1, kPickedRows));
  lines.push_back(bench_score(kernels, peaks, shape));
  for (BenchLine& line : bench_hashing(peaks, shape)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace gleaner
