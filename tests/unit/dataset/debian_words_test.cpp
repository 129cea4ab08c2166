#include <catch2/catch.hpp>

#include "common/data/word_model.hpp"

namespace gleaner {

TEST_CASE("debian words: they come from all of the package's fields", "[debian]") {
  DebianPackage package;
  package.name = "libboost-filesystem1.74-dev";
  package.description = "C++ library, for FILES";
  package.section = "libdevel";
  package.tags = {"role::devel-lib"};
  package.maintainer = "Debian Boost Team";
  std::vector<std::string> words;
  for (const auto& [word, weight] : debian_words(package)) {
    words.push_back(word);
    CHECK(weight > 0);
  }
  CHECK(words == std::vector<std::string>{"ending dev", "maintainer debian boost team", "name dev",
                                          "name filesystem", "name filesystem1.74", "name libboost",
                                          "section libdevel", "tag role::devel-lib", "word c++",
                                          "word files", "word for", "word library"});
  CHECK(debian_words({}).empty());
}

}  // namespace gleaner
