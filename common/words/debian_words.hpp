// A Debian package as its index describes it, and the words by which a network knows it. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gleaner {

struct DebianPackage {
  std::string name;
  std::string description;  // without line breaks
  std::string section;
  std::string maintainer;         // without the address
  std::vector<std::string> tags;  // e.g. "role::program"
  // The packages that it needs to run (Depends and Pre-Depends): of alternatives the first, which
  // is the one that is installed when nothing else decides. Without versions; ascending; each once.
  std::vector<std::string> depends;
  std::vector<std::string> provides;
};

// The features of a package, e.g. "name python3", with their weights before the words' rarity is
// taken into account; ascending, each once.
std::vector<std::pair<std::string, double>> debian_words(const DebianPackage& package);

// The value of a feature of this weight that `occurrences` of the training points have.
float debian_value(double weight, std::uint32_t occurrences, std::uint64_t points);

}  // namespace gleaner
