// Pairs the labels, or features, of a model file with the same things in a data set: by name if
// both have names, else by number. Immutable; any thread.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/data/name_table.hpp"

namespace gleaner {

class NameMatch {
 public:
  static constexpr std::uint32_t kNone = ~0U;

  // By number.
  NameMatch(std::uint32_t in_file, std::uint32_t in_data);
  // By name. Of equal names in one table, the first counts.
  NameMatch(const NameTable& in_file, const NameTable& in_data);

  [[nodiscard]] bool is_by_name() const { return is_by_name_; }

  // Whether equal numbers are the same thing.
  [[nodiscard]] bool is_identity() const;

  // The number in the data set, or kNone.
  [[nodiscard]] std::uint32_t to_data(std::uint32_t in_file) const { return to_data_[in_file]; }

  // The number in the file, or kNone.
  [[nodiscard]] std::uint32_t to_file(std::uint32_t in_data) const {
    return in_data < to_file_.size() ? to_file_[in_data] : kNone;
  }

  // Numbers that file and data set share.
  [[nodiscard]] std::uint32_t shared() const { return shared_; }

  [[nodiscard]] const std::vector<std::uint32_t>& all_to_data() const { return to_data_; }

 private:
  void pair(std::uint32_t in_file, std::uint32_t in_data);

  bool is_by_name_;
  std::uint32_t shared_ = 0;
  std::vector<std::uint32_t> to_data_;  // by number in the file
  std::vector<std::uint32_t> to_file_;  // by number in the data set
};

}  // namespace gleaner
