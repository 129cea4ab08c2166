// The data of trials: parts of a training set on which candidates are trained, and the examples
// held out of them, on which they are compared.
//
// A sample keeps the number of examples per label where it can. Where examples have one label, as
// titles and products do, labels are drawn, each with all its examples. Where they have several,
// examples are drawn. A set that is smaller than the sample is taken whole and held out part by
// part, as long as all parts together are no larger than the sample.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/data/point_parser.hpp"
#include "common/result.hpp"

namespace gleaner {

struct TrialData {
  std::unique_ptr<PackedDataset> train;  // only the labels of the sample, numbered from 0
  std::vector<Point> held_out;           // with these numbers, in the sample's order
};

// At most kTrialParts parts of about `sample` examples. None if fewer than kTrialExamplesMin
// examples can be held out. A function of data, seed and `sample`. Writes files at `scratch` plus a
// number, and removes them before it returns; errors name these files.
inline constexpr std::uint64_t kTrialParts = 3;
inline constexpr std::uint64_t kTrialExamplesMin = 50;
Result<std::vector<TrialData>> trial_data(const PackedDataset& data, std::uint64_t sample,
                                          std::uint64_t seed, const std::string& scratch);

}  // namespace gleaner
