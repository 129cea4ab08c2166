#include "common/train/sim_hash.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/counter_random.hpp"
#include "common/model/shard_map.hpp"
#include "common/result.hpp"

namespace gleaner {
namespace {

// The fewest projections that `project_codes` takes at once.
constexpr std::size_t kBlockMin = 32;
constexpr std::size_t kWordBits = 16;
// `cut` reads eight bytes from the word in which a code begins.
constexpr std::size_t kWordsBeyond = 4;

}  // namespace

SimHash::SimHash(const ModelConfig& config, const Kernels& kernels)
    : kernels_(kernels), bits_(config.hash_bits), tables_(config.tables) {
  const std::size_t width = config.hidden;
  const std::size_t block = std::bit_ceil(std::max(width, kBlockMin));
  const std::size_t used = std::size_t{bits_} * tables_;
  const std::size_t count = (used + block - 1) / block * block;
  flips_.resize(count);
  for (std::size_t i = 0; i < count; i += 64) {
    const std::uint64_t word = counter_random(config.seed, Purpose::kHashProjection, i / 64);
    for (std::size_t j = i; j < std::min(i + 64, count); ++j) {
      flips_[j] = ((word >> (j % 64)) & 1) != 0 ? 1.0F : -1.0F;
    }
  }
  pairs_.resize(width * count);
  thresholds_.resize(count);
  for (std::size_t p = 0; p < count; ++p) {
    for (std::size_t i = 0; i < width; ++i) {
      const bool is_odd = std::popcount(p % block & i) % 2 != 0;
      const float flip = flips_[p / block * block + i];
      const auto sign = static_cast<std::int8_t>(is_odd ? -flip : flip);
      pairs_[i / 2 * 2 * count + 2 * p + i % 2] = sign;
      thresholds_[p] += kCodeOffset * sign;
    }
  }
  projections_ = {width, block, count, flips_.data(), pairs_.data(), thresholds_.data()};
}

void SimHash::hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                         HashScratch& scratch) const {
  GLEANER_CHECK(hidden.size() == projections_.width && codes.size() == tables_);
  scratch.words.resize(projections_.count / kWordBits + kWordsBeyond);
  kernels_.project_codes(projections_, hidden.data(), scratch.words.data());
  cut(scratch.words.data(), codes);
}

void SimHash::hash_rows(std::span<const float* const> rows, std::span<std::uint32_t> codes,
                        HashScratch& scratch) const {
  GLEANER_CHECK(rows.size() <= kHashRowsMax && codes.size() == rows.size() * tables_);
  const std::size_t words = projections_.count / kWordBits;
  scratch.words.resize(rows.size() * words + kWordsBeyond);
  kernels_.project_rows(projections_, rows.data(), rows.size(), scratch.words.data());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    cut(scratch.words.data() + r * words, codes.subspan(r * tables_, tables_));
  }
}

void SimHash::cut(const std::uint16_t* words, std::span<std::uint32_t> codes) const {
  static_assert(std::endian::native == std::endian::little, "words follow each other as bits do");
  const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
  const char* bytes = reinterpret_cast<const char*>(words);
  std::size_t bit = 0;
  for (std::uint32_t& code : codes) {
    std::uint64_t window = 0;
    std::memcpy(&window, bytes + bit / 8, sizeof(window));
    code = static_cast<std::uint32_t>((window >> (bit % 8)) & mask);
    bit += bits_;
  }
}

RowCodes::RowCodes(const ModelConfig& config)
    : tables_(ShardMap(config).tables()),
      sim_hash_(tables_ == 0 ? nullptr : std::make_unique<SimHash>(config, default_kernels())) {}

std::span<const std::uint32_t> RowCodes::of(std::span<const float> values, std::size_t row_width) {
  GLEANER_CHECK(row_width > 0 && values.size() % row_width == 0);
  const std::size_t count = values.size() / row_width;
  codes_.resize(count * tables_);
  for (std::size_t begin = 0; begin < count && tables_ > 0; begin += kHashRowsMax) {
    const std::size_t end = std::min(count, begin + kHashRowsMax);
    rows_.clear();
    for (std::size_t i = begin; i < end; ++i) rows_.push_back(values.data() + i * row_width);
    sim_hash_->hash_rows(rows_, std::span(codes_).subspan(begin * tables_, rows_.size() * tables_),
                         scratch_);
  }
  return codes_;
}

QueryBatch::QueryBatch(const ModelConfig& config, const SimHash* sim_hash)
    : config_(config), sim_hash_(sim_hash), tables_(sim_hash == nullptr ? 0 : config.tables) {}

void QueryBatch::prepare(BatchIndex batch, const QuantizedActivations& codes, ThreadPool& pool) {
  GLEANER_CHECK(codes.hidden == config_.hidden);
  batch_ = batch;
  codes_ = &codes;
  if (sim_hash_ == nullptr) return;
  hashes_.resize(std::size_t{codes.examples} * tables_);
  start_tables_.resize(codes.examples);
  scratch_.resize(pool.threads());
  pool.parallel_for(codes.examples, [this](std::size_t example, unsigned worker) {
    prepare_example(static_cast<std::uint32_t>(example), scratch_[worker]);
  });
}

void QueryBatch::prepare_example(std::uint32_t example, HashScratch& scratch) {
  const std::size_t first = std::size_t{example} * tables_;
  const std::span<const std::uint8_t> hidden(
      codes_->codes.data() + std::size_t{example} * config_.hidden, config_.hidden);
  sim_hash_->hash_query(hidden, std::span(hashes_).subspan(first, tables_), scratch);
  start_tables_[example] = static_cast<std::uint32_t>(
      below(counter_random(config_.seed, Purpose::kStartTable, batch_, example), tables_));
}

std::uint64_t QueryBatch::memory_bytes() const {
  return (hashes_.capacity() + start_tables_.capacity()) * sizeof(std::uint32_t);
}

}  // namespace gleaner
