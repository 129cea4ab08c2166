// The rows of a run's last checkpoint, one after another, including rows that training never
// touched, in constant memory. One thread at a time.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/data/name_table.hpp"
#include "common/ids.hpp"
#include "common/model/shard_map.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

struct ModelRow {
  std::uint32_t row = 0;
  std::uint32_t neuron = 0;  // of an output row, counted from the shard's first
  bool is_stored = false;
  std::span<const float> values;         // ShardMap::row_width: weights, then an output row's bias
  float state = 0;                       // of the optimizer
  std::span<const std::uint32_t> codes;  // one per table; none for rows that are not stored
};

// Visits every row of the shard, ascending. Wide rows are all stored; a neuron may have several.
Result<void> visit_model_rows(RunStore& run, ShardId shard,
                              const std::function<void(const ModelRow&)>& visit);

// The label that `text` means: a number or a name.
Result<std::uint32_t> find_label(const NameTable& names, std::uint32_t labels,
                                 const std::string& text);

// As NameTable::load, but kInvalidData for a missing file, since kNotFound means a missing store.
Result<NameTable> load_names(const std::string& path);

// The names in `file`, at least as many as the run's labels; no names without a file.
Result<NameTable> label_names_of(const RunIdentity& identity, const std::string& file);

// Mean and quantiles of numbers.
class Distribution {
 public:
  void add(double value) {
    values_.push_back(value);
    is_sorted_ = false;
  }

  [[nodiscard]] std::size_t size() const { return values_.size(); }

  // NaN without values.
  [[nodiscard]] double quantile(double share);
  [[nodiscard]] double mean() const;

 private:
  std::vector<double> values_;
  bool is_sorted_ = false;
};

// Euclidean length.
inline double norm(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * double{value};
  return std::sqrt(sum);
}

// Weights of a row, without an output row's bias.
inline std::span<const float> weights_of(const ShardMap& map, ShardId shard, const ModelRow& row) {
  return map.is_output(shard) ? row.values.first(row.values.size() - 1) : row.values;
}

}  // namespace gleaner
