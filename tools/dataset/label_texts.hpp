// The labels of a vocabulary with their words: a table, a list as Annif has it, or SKOS (skos.hpp).
#pragma once

#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

struct LabelText {
  std::string id;                  // the label's name in a data set, without brackets around a URI
  std::string name;                // for people; may be empty
  std::string notation;            // such as a class number; may be empty
  std::vector<std::string> texts;  // at least one of a table or list
  bool is_retired = false;         // never answered
};

// Reads labels in the order of the file, each id once; later rows of an id add texts. A table (CSV,
// TSV, JSON lines) has a column `id` (or `label`, `uri`) and `name`, `text` or both. A list has
// lines of an id, a name and perhaps a notation, with tabs between them. `language` chooses among
// the labels of SKOS. Errors name file and line.
Result<std::vector<LabelText>> read_label_texts(const std::string& path,
                                                const std::string& language);

}  // namespace gleaner
