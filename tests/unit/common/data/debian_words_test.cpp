#include <catch2/catch.hpp>

#include "common/data/word_rule.hpp"

namespace gleaner {

TEST_CASE("debian words: they come from a package's name and description", "[debian]") {
  std::vector<std::string> words;
  for (const auto& [word, weight] :
       debian_words("libboost-filesystem1.74-dev", "C++ library, for FILES")) {
    words.push_back(word);
    CHECK(weight > 0);
  }
  CHECK(words == std::vector<std::string>{"ending dev", "name dev", "name filesystem",
                                          "name filesystem1.74", "name libboost", "word c++",
                                          "word files", "word for", "word library"});
  CHECK(debian_words("", "").empty());
}

}  // namespace gleaner
