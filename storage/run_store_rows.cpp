// The rows of a shard as they are read: the stored ones, with the staged commits on top that come
// before the checkpoint that is asked for.
#include <fmt/format.h>

#include <algorithm>

#include "common/model/shard_rows.hpp"
#include "storage/run_store_impl.hpp"

namespace gleaner {

void RunStore::Impl::initial_values(ShardId shard, std::uint32_t row,
                                    std::span<float> values) const {
  std::uint32_t count = 0;
  if (map.is_output(shard) && !map.is_wide()) {
    count = label_counts[map.label_of_neuron(map.neurons(shard).begin + row)];
  }
  initial_row(identity.model, map, shard, row, count, values);
}

ShardRows RunStore::Impl::overlay(ShardId shard, std::uint32_t begin, std::uint32_t end,
                                  const ShardRows& base, const SparseUpdate& update) const {
  const std::size_t width = map.row_width(shard);
  ShardRows merged;
  std::vector<float> initial(width);
  const auto append = [&](std::uint32_t row, std::span<const float> values, float state) {
    merged.rows.push_back(row);
    merged.values.insert(merged.values.end(), values.begin(), values.end());
    merged.states.push_back(state);
  };
  const auto append_base = [&](std::size_t i) {
    append(base.rows[i], std::span(base.values).subspan(i * width, width), base.states[i]);
  };
  std::size_t next = 0;
  for (std::size_t i = 0; i < update.rows.size(); ++i) {
    const std::uint32_t row = update.rows[i];
    if (row < begin || row >= end) continue;
    while (next < base.rows.size() && base.rows[next] < row) append_base(next++);
    std::span<const float> values = initial;
    if (next < base.rows.size() && base.rows[next] == row) {
      values = std::span(base.values).subspan(next++ * width, width);
    } else {
      initial_values(shard, row, initial);
    }
    append(row, values, update.states[i]);
    add_row_delta(update, i, std::span(merged.values).last(width));
  }
  while (next < base.rows.size()) append_base(next++);
  if (map.is_wide()) merged.codes = base.codes;
  return merged;
}

Result<ShardRows> RunStore::read_rows(ShardId shard, std::uint32_t begin, std::uint32_t end,
                                      RoundIndex base_round) {
  Impl& run = *impl_;
  if (raw(shard) >= run.map.shard_count() || end > run.map.row_count(shard)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run has no shard {} with rows {} to {}", raw(shard), begin, end)};
  }
  if (base_round < run.checkpoint) {
    return Error{ErrorCode::kNotFound, fmt::format("checkpoint {} is gone: the store is at {}",
                                                   base_round, run.checkpoint)};
  }
  Result<ShardRows> rows = run.rows.read_range(shard, begin, end);
  if (!rows || run.checkpoint == base_round) return rows;
  for (RoundIndex round = run.checkpoint; round < base_round; ++round) {
    auto visited = run.staged.visit(round, shard, begin, end, [&](const SparseUpdate& update) {
      rows = run.overlay(shard, begin, end, *rows, update);
      return Result<void>();
    });
    if (!visited) return visited.error();
  }
  // A wide row's features never change, so its codes are as in the checkpoint.
  if (run.map.is_wide()) {
    if (rows->rows.size() * run.map.codes_per_row(shard) == rows->codes.size()) return rows;
    return Error{ErrorCode::kCorrupt,
                 fmt::format("a staged commit of shard {} changes a row that the shard does not "
                             "have",
                             raw(shard))};
  }
  if (run.map.codes_per_row(shard) > 0) {
    const auto codes = run.codes.of(rows->values, run.map.row_width(shard));
    rows->codes.assign(codes.begin(), codes.end());
  }
  return rows;
}

Result<void> RunStore::visit_rows(
    ShardId shard, const std::function<Result<void>(std::uint32_t begin, ShardRows rows)>& visit) {
  const std::uint32_t rows = shard_map().row_count(shard);
  for (std::uint32_t begin = 0; begin < rows; begin += std::min(kRowsPerRead, rows - begin)) {
    Result<ShardRows> read =
        read_rows(shard, begin, begin + std::min(kRowsPerRead, rows - begin), checkpoint());
    if (!read) return read.error();
    if (auto visited = visit(begin, *std::move(read)); !visited) return visited;
  }
  return {};
}

}  // namespace gleaner
