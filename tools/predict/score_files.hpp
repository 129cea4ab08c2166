// Files of an evaluation: pairs to leave out, all scores, and a row per label.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/result.hpp"
#include "tools/predict/ranked_examples.hpp"

namespace gleaner {

// A pair of an example's place in its file and a label, both from 0.
struct FilteredPair {
  std::uint64_t example = 0;
  std::uint32_t label = 0;
  friend auto operator<=>(const FilteredPair&, const FilteredPair&) = default;
};

// Reads lines "EXAMPLE LABEL", as the repository has them for sets whose labels are examples too.
// Ascending. kInvalidData names file and line.
Result<std::vector<FilteredPair>> read_filter(const std::string& path);

// Writes the probabilities of all ranked labels, by the name's ending: .npz (a CSR matrix: data,
// indices, indptr, shape), .run or .trec (lines "EXAMPLE Q0 LABEL RANK PROBABILITY gleaner"), or a
// line "LABEL:PROBABILITY ..." per example below a line "EXAMPLES LABELS".
Result<void> write_scores(const std::string& path, std::span<const RankedExample> examples,
                          std::uint32_t labels);

struct LabelReport {
  std::span<const std::uint32_t> training_counts;  // by label
  const NameTable& names;                          // may be empty
  float logit_min = 0;                             // labels from here on are predicted
};

// A CSV row per label that is true or predicted for an example with labels.
Result<void> write_per_label(const std::string& path, std::span<const RankedExample> examples,
                             const LabelReport& report);

}  // namespace gleaner
