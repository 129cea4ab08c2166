// The word or number that somebody probably meant. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace gleaner {

// How many letters to insert, leave out, replace, or swap with their neighbour make `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// A word further away than a third of its length is another word.
bool is_close(std::size_t distance, std::string_view word);

// "; did you mean 'title'?" with the word of `known` that is closest, whatever its capitals. Empty
// when none is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 0.2?" for a number as people write it: "0,2", "20 %", "20%". Otherwise empty.
std::string did_you_mean_number(std::string_view text);

}  // namespace gleaner
