#include "common/lsh/dwta.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/counter_random.hpp"
#include "common/permutation.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kBinBits = 3;
constexpr std::uint32_t kBinCoordinates = 1u << kBinBits;
constexpr std::uint32_t kEmpty = ~0u;
// Attempts to find a bin to borrow from before giving up with 0, as a vector whose few non-zero
// coordinates no bin looks at would search for ever.
constexpr std::uint32_t kBorrowAttempts = 100;
// Keeps the keys of permutations apart from those of borrowing.
constexpr std::uint64_t kBorrowStream = std::uint64_t{1} << 32;

}  // namespace

Dwta::Dwta(const ModelConfig& config)
    : seed_(config.seed),
      hidden_(config.hidden),
      bits_(config.hash_bits),
      tables_(config.tables),
      bins_((config.hash_bits + kBinBits - 1) / kBinBits) {
  // Bins take consecutive pieces of random permutations, so that their coordinates are distinct.
  const std::size_t count = std::size_t{tables_} * bins_ * kBinCoordinates;
  coordinates_.reserve(count + hidden_);
  for (std::uint64_t round = 0; coordinates_.size() < count; ++round) {
    const Permutation order(
        hidden_, counter_random(seed_, Purpose::kHashProjection, round, ~std::uint64_t{}));
    for (std::uint32_t i = 0; i < hidden_; ++i) {
      coordinates_.push_back(static_cast<std::uint32_t>(order.forward(i)));
    }
  }
}

template <typename T>
void Dwta::hash(const T* vector, std::span<std::uint32_t> codes, HashScratch& scratch) const {
  const std::uint32_t last_bits = bits_ - (bins_ - 1) * kBinBits;
  scratch.winners.resize(std::size_t{tables_} * bins_);
  const std::span<std::uint32_t> winners(scratch.winners);
  for (std::uint32_t bin = 0; bin < winners.size(); ++bin) {
    const std::uint32_t* coordinates = &coordinates_[std::size_t{bin} * kBinCoordinates];
    const std::uint32_t width =
        bin % bins_ + 1 == bins_ ? std::uint32_t{1} << last_bits : kBinCoordinates;
    std::uint32_t winner = 0;
    bool is_empty = vector[coordinates[0]] == T{0};
    for (std::uint32_t i = 1; i < width; ++i) {
      is_empty = is_empty && vector[coordinates[i]] == T{0};
      if (vector[coordinates[i]] > vector[coordinates[winner]]) winner = i;
    }
    winners[bin] = is_empty ? kEmpty : winner;
  }
  for (std::uint32_t table = 0; table < tables_; ++table) {
    std::uint32_t code = 0;
    for (std::uint32_t i = 0; i < bins_; ++i) {
      const std::uint32_t bin = table * bins_ + i;
      const std::uint32_t winner = winners[bin] == kEmpty ? borrow(bin, winners) : winners[bin];
      const std::uint32_t width = i + 1 == bins_ ? last_bits : kBinBits;
      code = (code << width) | (winner & ((1u << width) - 1));
    }
    codes[table] = code;
  }
}

std::uint32_t Dwta::borrow(std::uint32_t bin, std::span<const std::uint32_t> winners) const {
  for (std::uint32_t attempt = 0; attempt < kBorrowAttempts; ++attempt) {
    const std::uint64_t random =
        counter_random(seed_, Purpose::kHashProjection, kBorrowStream + bin, attempt);
    const std::uint32_t winner = winners[below(random, winners.size())];
    if (winner != kEmpty) return winner;
  }
  return 0;
}

void Dwta::hash_query(std::span<const std::uint8_t> hidden, std::span<std::uint32_t> codes,
                      HashScratch& scratch) const {
  GLEANER_CHECK(hidden.size() == hidden_ && codes.size() == tables_);
  // Nothing to borrow from: every bin would search in vain.
  if (std::all_of(hidden.begin(), hidden.end(), [](std::uint8_t code) { return code == 0; })) {
    std::fill(codes.begin(), codes.end(), 0u);
    return;
  }
  hash(hidden.data(), codes, scratch);
}

void Dwta::hash_rows(std::span<const float* const> rows, std::span<std::uint32_t> codes,
                     HashScratch& scratch) const {
  GLEANER_CHECK(rows.size() <= kHashRowsMax && codes.size() == rows.size() * tables_);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    hash(rows[r], codes.subspan(r * tables_, tables_), scratch);
  }
}

}  // namespace gleaner
