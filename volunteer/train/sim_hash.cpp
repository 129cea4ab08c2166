#include "volunteer/train/sim_hash.hpp"

#include "common/check.hpp"
#include "common/counter_random.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kProjectionsMultiple = 32;
constexpr std::size_t kWordBits = 16;
// `cut` reads three words from wherever a code begins.
constexpr std::size_t kWordsBeyond = 2;

}  // namespace

SimHash::SimHash(const ModelConfig& config, const Kernels& kernels)
    : kernels_(kernels), bits_(config.hash_bits), tables_(config.tables) {
  const std::size_t used = std::size_t{bits_} * tables_;
  const std::size_t count =
      (used + kProjectionsMultiple - 1) / kProjectionsMultiple * kProjectionsMultiple;
  signs_.assign(config.hidden * count, 1.0F);
  pairs_.assign(config.hidden * count, 1);
  for (std::size_t p = 0; p < used; ++p) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < config.hidden; ++i) {
      if (i % 64 == 0) word = counter_random(config.seed, Purpose::kHashProjection, p, i / 64);
      if (((word >> (i % 64)) & 1) != 0) continue;
      signs_[i * count + p] = -1.0F;
      pairs_[i / 2 * 2 * count + 2 * p + i % 2] = -1;
    }
  }
  projections_ = {config.hidden, count, signs_.data(), pairs_.data()};
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
  const std::uint64_t mask = (std::uint64_t{1} << bits_) - 1;
  std::size_t bit = 0;
  for (std::uint32_t& code : codes) {
    const std::uint16_t* first = words + bit / kWordBits;
    const std::uint64_t window =
        first[0] | (std::uint64_t{first[1]} << 16) | (std::uint64_t{first[2]} << 32);
    code = static_cast<std::uint32_t>((window >> (bit % kWordBits)) & mask);
    bit += bits_;
  }
}

}  // namespace gleaner
