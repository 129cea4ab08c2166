// The rows of a run's last checkpoint one after the other, those that training never touched
// included, in constant memory. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/data/name_table.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

struct ModelRow {
  std::uint32_t row = 0;
  std::uint32_t neuron = 0;  // an output row's, counted from the shard's first
  bool is_stored = false;
  std::span<const float> values;         // ShardMap::row_width: weights, and an output row's bias
  float state = 0;                       // of the optimizer
  std::span<const std::uint32_t> codes;  // one a table; none for rows that are not stored
};

// Calls `visit` with every row of the shard, ascending; of wide rows, all of which are stored, with
// as many as there are for each neuron.
Result<void> visit_model_rows(RunStore& run, ShardId shard,
                              const std::function<void(const ModelRow&)>& visit);

// Output neurons as people ask for them: by label. `text` is a label's number or its name.
Result<std::uint32_t> find_label(const NameTable& names, std::uint32_t labels,
                                 const std::string& text);

// As NameTable::load, but a file that is missing is kInvalidData: kNotFound is of a store.
Result<NameTable> load_names(const std::string& path);

// The names in `file`, which must be enough for the run's labels; none without a file.
Result<NameTable> label_names_of(const RunIdentity& identity, const std::string& file);

// Quantiles of some numbers.
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

}  // namespace gleaner
