// The latest parts sent over a relay's connection: a message names a kept part by its number
// instead of carrying it again. Both ends count the same bytes, and so keep the same parts. One
// thread.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/bytes.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// The activations of a message that a relay fills: AtRelay::kFill.
inline std::vector<SharedBytes*> parts_of(TrainUnit& unit) {
  std::vector<SharedBytes*> parts;
  for (UnitBatch& batch : unit.batches) parts.push_back(&batch.hidden);
  return parts;
}

inline std::vector<SharedBytes*> parts_of(EvalUnit& unit) {
  return {&unit.hidden};
}

class RelayParts {
 public:
  // Takes the next part and returns its number, one more than the last. Forgets the oldest parts
  // beyond kRelayPartsBytes, but never this one.
  std::uint64_t add(SharedBytes part) {
    bytes_ += part->size();
    numbers_[part.get()] = ++last_;
    parts_.push_back(std::move(part));
    while (bytes_ > kRelayPartsBytes && parts_.size() > 1) {
      const auto oldest = numbers_.find(parts_.front().get());
      if (oldest->second == last_ - parts_.size() + 1) numbers_.erase(oldest);
      bytes_ -= parts_.front()->size();
      parts_.pop_front();
    }
    return last_;
  }

  // Null when the part is forgotten or has not come yet.
  [[nodiscard]] SharedBytes find(std::uint64_t number) const {
    const std::uint64_t first = last_ - parts_.size() + 1;
    return number >= first && number <= last_ ? parts_[number - first] : nullptr;
  }

  // The number of this very object, if it is kept.
  [[nodiscard]] std::optional<std::uint64_t> number_of(const SharedBytes& part) const {
    const auto found = numbers_.find(part.get());
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::deque<SharedBytes> parts_;  // the last has the number last_
  std::unordered_map<const Bytes*, std::uint64_t> numbers_;
  std::size_t bytes_ = 0;
  std::uint64_t last_ = 0;
};

}  // namespace gleaner
