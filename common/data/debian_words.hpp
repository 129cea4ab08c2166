// The words by which a network knows a Debian package. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gleaner {

// The words by which a network knows a Debian package, e.g. "name python3", with their weights
// before their rarity is taken into account. A set of tools/dataset/debian.py has more of them:
// those of the section, the tags and the maintainer, which no text tells.
std::map<std::string, double> debian_words(std::string_view name, std::string_view description);

}  // namespace gleaner
