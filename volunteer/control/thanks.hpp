// Keeps what masters thanked this volunteer for, over restarts and after they are gone: a line for
// each run, as the master has signed it where it has a key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/access/signed_thanks.hpp"
#include "common/result.hpp"

namespace gleaner::volunteer {

// "3 h 12 min, 41,000 examples checked".
std::string work_words(std::uint64_t seconds, std::uint64_t examples, Checked checked);

// Adds a line to the folder's file, in place of the one that the same master signed before for the
// same run; the oldest lines go. Empty `folder`: nothing is kept.
Result<void> keep_thanks(const std::string& folder, const SignedThanks& thanks);
// As the other, of a master without a key.
Result<void> keep_thanks(const std::string& folder, const std::string& master,
                         const std::string& line);

// The lines in words, oldest first, each with its master and whether its signature fits; none where
// there is no file.
std::vector<std::string> kept_thanks(const std::string& folder);

}  // namespace gleaner::volunteer
