// Packages to points: words as weighted features, dependencies as labels. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/data/point_parser.hpp"
#include "common/data/word_model.hpp"
#include "tools/dataset/make/dataset_debian_index.hpp"

namespace gleaner {

struct DebianOptions {
  std::uint64_t seed = 1;
  double test_share = 0.2;
  // Labels are packages on which at least N packages depend.
  std::uint32_t dependents_min = 1;
};

struct DebianPoint {
  std::size_t package = 0;  // position in the index
  Point point;
};

struct DebianSet {
  Vocabulary features;              // e.g. "word fast"; occurrences in the training part
  std::vector<std::string> labels;  // package names by id; ascending
  std::vector<DebianPoint> train;
  std::vector<DebianPoint> test;
};

// Every package with a label is a point; its part depends on its name and the seed alone, so it
// stays there when the index changes. Features are words that at least two training packages have.
DebianSet make_debian_set(const std::vector<DebianPackage>& packages, const DebianOptions& options);

}  // namespace gleaner
