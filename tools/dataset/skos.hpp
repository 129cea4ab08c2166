// Concepts of a thesaurus in SKOS (W3C 2009), written as Turtle or N-Triples.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "tools/dataset/label_texts.hpp"

namespace gleaner {

// Whether the file is RDF, by its name's ending (.gz and .zst apart) or the beginning of its text.
bool is_rdf(const std::string& path, std::string_view begin);

// The concepts, in the file's order: the preferred label in `language` as name, alternative labels
// as further texts, the notation. A concept marked owl:deprecated is retired. An empty language
// means the language of most preferred labels. A concept without a label in the language has its
// first one. Errors name file, line and column.
Result<std::vector<LabelText>> read_skos(const std::string& path, std::string language);

}  // namespace gleaner
