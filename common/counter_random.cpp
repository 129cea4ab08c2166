#include "common/counter_random.hpp"

#include <bit>

#include "common/result.hpp"

namespace gleaner {

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  GLEANER_CHECK(size >= 1);
  const unsigned bits = size > 1 ? static_cast<unsigned>(std::bit_width(size - 1)) : 1;
  half_bits_ = (bits + 1) / 2;
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  for (int round = 0; round < kRounds; ++round) {
    round_keys_[static_cast<std::size_t>(round)] = mix64(key + static_cast<std::uint64_t>(round));
  }
}

std::uint64_t Permutation::forward(std::uint64_t index) const {
  GLEANER_CHECK(index < size_);
  do {
    std::uint64_t left = index >> half_bits_;
    std::uint64_t right = index & half_mask_;
    for (const std::uint64_t round_key : round_keys_) {
      const std::uint64_t next = left ^ (mix64(right ^ round_key) & half_mask_);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

std::uint64_t Permutation::inverse(std::uint64_t image) const {
  GLEANER_CHECK(image < size_);
  do {
    std::uint64_t left = image >> half_bits_;
    std::uint64_t right = image & half_mask_;
    for (auto round_key = round_keys_.rbegin(); round_key != round_keys_.rend(); ++round_key) {
      const std::uint64_t previous = right ^ (mix64(left ^ *round_key) & half_mask_);
      right = left;
      left = previous;
    }
    image = (left << half_bits_) | right;
  } while (image >= size_);
  return image;
}

}  // namespace gleaner
