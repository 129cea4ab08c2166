// Names with numbers and how often they occur. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// Names that occur at least so often, numbered in ascending order.
class Vocabulary {
 public:
  Vocabulary() = default;
  // Takes names in the order of their numbers. kInvalidData, naming `source`, when they do not
  // ascend or the lists differ in length.
  static Result<Vocabulary> of(std::vector<std::string> names,
                               const std::vector<std::uint32_t>& occurrences,
                               const std::string& source);

  void count(const std::string& name) { ++names_[name].occurrences; }

  void number(std::uint32_t least);

  struct Entry {
    std::uint32_t occurrences = 0;
    std::uint32_t id = 0;
    bool is_numbered = false;
  };

  // Null when the name has no number.
  [[nodiscard]] const Entry* find(const std::string& name) const;

  [[nodiscard]] const std::vector<std::string>& numbered() const { return numbered_; }

  // How often each numbered name occurred, by number.
  [[nodiscard]] std::vector<std::uint32_t> occurrences() const;

 private:
  std::map<std::string, Entry> names_;
  std::vector<std::string> numbered_;
};

// ln((points + 1) / (occurrences + 1)) + 1: the rarer a word among the training points, the more it
// weighs.
double rarity(std::uint32_t occurrences, std::uint64_t points);

// Rounded to what the file shows, so that no library's logarithm decides a bit.
float in_thousandths(double value);

}  // namespace gleaner
