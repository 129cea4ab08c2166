#include "storage/keep/name_match.hpp"

#include <algorithm>
#include <unordered_map>

namespace gleaner {

NameMatch::NameMatch(std::uint32_t in_file, std::uint32_t in_data)
    : is_by_name_(false), to_data_(in_file, kNone), to_file_(in_data, kNone) {
  for (std::uint32_t number = 0; number < std::min(in_file, in_data); ++number) {
    pair(number, number);
  }
}

NameMatch::NameMatch(const NameTable& in_file, const NameTable& in_data)
    : is_by_name_(true), to_data_(in_file.size(), kNone), to_file_(in_data.size(), kNone) {
  std::unordered_map<std::string_view, std::uint32_t> known;
  for (std::uint32_t number = 0; number < in_data.size(); ++number) {
    if (!in_data.name(number).empty()) known.try_emplace(in_data.name(number), number);
  }
  for (std::uint32_t number = 0; number < in_file.size(); ++number) {
    const auto found = known.find(in_file.name(number));
    if (found != known.end() && to_file_[found->second] == kNone) pair(number, found->second);
  }
}

void NameMatch::pair(std::uint32_t in_file, std::uint32_t in_data) {
  to_data_[in_file] = in_data;
  to_file_[in_data] = in_file;
  ++shared_;
}

bool NameMatch::is_identity() const {
  for (std::uint32_t number = 0; number < to_data_.size(); ++number) {
    if (to_data_[number] != number) return false;
  }
  return true;
}

}  // namespace gleaner
