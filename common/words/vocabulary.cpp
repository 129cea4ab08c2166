#include "common/words/vocabulary.hpp"

#include <fmt/format.h>

#include <cmath>

namespace gleaner {

Result<Vocabulary> Vocabulary::of(std::vector<std::string> names,
                                  const std::vector<std::uint32_t>& occurrences,
                                  const std::string& source) {
  if (names.size() != occurrences.size()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} names with {} counts: the files are not of one data set",
                             source, names.size(), occurrences.size())};
  }
  Vocabulary made;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0 && names[i] <= names[i - 1]) {
      return Error{
          ErrorCode::kInvalidData,
          fmt::format("{}:{}:1: expected names in ascending order, each once", source, i + 1)};
    }
    made.names_.emplace_hint(made.names_.end(), names[i],
                             Entry{occurrences[i], static_cast<std::uint32_t>(i), true});
  }
  made.numbered_ = std::move(names);
  return made;
}

void Vocabulary::number(std::uint32_t least) {
  for (auto& [name, entry] : names_) {
    if (entry.occurrences < least) continue;
    entry.id = static_cast<std::uint32_t>(numbered_.size());
    entry.is_numbered = true;
    numbered_.push_back(name);
  }
}

const Vocabulary::Entry* Vocabulary::find(const std::string& name) const {
  const auto place = names_.find(name);
  return place == names_.end() || !place->second.is_numbered ? nullptr : &place->second;
}

std::vector<std::uint32_t> Vocabulary::occurrences() const {
  std::vector<std::uint32_t> all;
  for (const std::string& name : numbered_) all.push_back(names_.at(name).occurrences);
  return all;
}

double rarity(std::uint32_t occurrences, std::uint64_t points) {
  return std::log(static_cast<double>(points + 1) / static_cast<double>(occurrences + 1)) + 1;
}

float in_thousandths(double value) {
  return static_cast<float>(std::round(value * 1000) / 1000);
}

}  // namespace gleaner
