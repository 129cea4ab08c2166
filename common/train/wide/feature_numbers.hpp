// Numbers some of a model's features, ascending from 0. A bitmap has these features; each of its
// words has the count of the numbered features before it. A shard lacks most features of an
// example, and the bitmap is small enough for the first cache levels to tell which. Built once; any
// thread may then read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gleaner {

class FeatureNumbers {
 public:
  // `features` is the model's number of features. No feature has a number yet.
  explicit FeatureNumbers(std::uint32_t features)
      : words_((std::size_t{features} + 63) / 64), firsts_(words_.size()) {}

  void add(std::span<const std::uint32_t> features) {
    for (const std::uint32_t feature : features) words_[feature / 64] |= bit(feature);
  }

  // Call after the last add().
  void number() {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      firsts_[i] = count_;
      count_ += ones(words_[i]);
    }
  }

  [[nodiscard]] std::uint32_t count() const { return count_; }

  [[nodiscard]] bool has(std::uint32_t feature) const {
    return (words_[feature / 64] & bit(feature)) != 0;
  }

  // The number of smaller features that have a number: the feature's own number, if has(feature).
  [[nodiscard]] std::uint32_t of(std::uint32_t feature) const {
    return firsts_[feature / 64] + ones(words_[feature / 64] & (bit(feature) - 1));
  }

  [[nodiscard]] std::uint64_t memory_bytes() const {
    return words_.capacity() * sizeof(std::uint64_t) + firsts_.capacity() * sizeof(std::uint32_t);
  }

 private:
  // std::popcount() is a function call where the build may not assume an instruction for it.
  static std::uint32_t ones(std::uint64_t word) {
    word -= (word >> 1) & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + ((word >> 2) & 0x3333333333333333u);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<std::uint32_t>((word * 0x0101010101010101u) >> 56);
  }

  static std::uint64_t bit(std::uint32_t feature) { return std::uint64_t{1} << feature % 64; }

  std::vector<std::uint64_t> words_;
  std::vector<std::uint32_t> firsts_;  // words
  std::uint32_t count_ = 0;
};

}  // namespace gleaner
