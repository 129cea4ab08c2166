#include "storage/keep/model_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/console/terminal.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {

Result<NameTable> load_names(const std::string& path) {
  Result<NameTable> names = NameTable::load(path);
  if (names || names.error().code != ErrorCode::kNotFound) return names;
  return Error{ErrorCode::kInvalidData, names.error().message};
}

Result<void> visit_model_rows(RunStore& run, ShardId shard,
                              const std::function<void(const ModelRow&)>& visit) {
  const ShardMap& map = run.shard_map();
  const std::uint32_t rows = map.row_count(shard);
  const std::size_t width = map.row_width(shard);
  const std::size_t tables = map.codes_per_row(shard);
  const std::vector<std::uint32_t> label_counts = run.label_counts(shard);
  std::vector<float> initial(width);
  return run.visit_rows(shard, [&](std::uint32_t begin, const ShardRows& stored) -> Result<void> {
    const std::uint32_t end = begin + std::min(RunStore::kRowsPerRead, rows - begin);
    std::size_t next = 0;
    for (std::uint32_t row = begin; row < end; ++row) {
      if (next < stored.rows.size() && stored.rows[next] == row) {
        const std::uint32_t neuron = map.is_wide() ? stored.codes[next * tables] : row;
        visit({row, neuron, true, std::span(stored.values).subspan(next * width, width),
               stored.states[next], std::span(stored.codes).subspan(next * tables, tables)});
        ++next;
        continue;
      }
      if (map.is_wide()) break;
      const std::uint32_t count = label_counts.empty() ? 0 : label_counts[row];
      initial_row(run.identity().model, map, shard, row, count, initial);
      visit({row, row, false, initial, 0.0F, {}});
    }
    return {};
  });
}

Result<std::uint32_t> find_label(const NameTable& names, std::uint32_t labels,
                                 const std::string& text) {
  for (std::uint32_t label = 0; label < std::min(names.size(), labels); ++label) {
    if (names.name(label) == text) return label;
  }
  std::uint32_t label = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), label);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && label < labels) {
    return label;
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the run has no label '{}': name one of its {} labels by number, from 0 "
                           "on, or by its name in the file given as --labels",
                           printable(text), labels)};
}

Result<NameTable> label_names_of(const RunIdentity& identity, const std::string& file) {
  if (file.empty()) return NameTable();
  if (auto its = check_name_file(identity.settings, file, kLabelNamesFile); !its) {
    return its.error();
  }
  Result<NameTable> names = load_names(file);
  if (!names || names->size() >= identity.model.labels) return names;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} has {} names, but the model {} labels: it is of another data set",
                           file, names->size(), identity.model.labels)};
}

double Distribution::quantile(double share) {
  if (values_.empty()) return std::numeric_limits<double>::quiet_NaN();
  if (!is_sorted_) std::ranges::sort(values_);
  is_sorted_ = true;
  const double place = share * static_cast<double>(values_.size() - 1);
  return values_[static_cast<std::size_t>(std::lround(place))];
}

double Distribution::mean() const {
  if (values_.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values_.begin(), values_.end(), 0.0) / static_cast<double>(values_.size());
}

}  // namespace gleaner
