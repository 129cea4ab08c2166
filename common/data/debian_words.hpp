// The words by which a network knows a Debian package. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gleaner {

// The words of a Debian package, e.g. "name python3", with their weights before rarity. A data set
// of tools/dataset/debian.py has more words, which a text does not contain: section, tags,
// maintainer.
std::map<std::string, double> debian_words(std::string_view name, std::string_view description);

}  // namespace gleaner
