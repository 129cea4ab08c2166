#include "common/model/row_checks.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <utility>
#include <vector>

#include "common/portable_math.hpp"

namespace gleaner {
namespace {

template <typename... Args>
Error refusal(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

Result<void> check_row_numbers(const ShardMap& map, ShardId shard,
                               const std::vector<std::uint32_t>& rows) {
  const auto unordered = std::ranges::adjacent_find(rows, std::greater_equal<>());
  if (unordered != rows.end()) {
    return refusal("row {} is out of order", *std::next(unordered));
  }
  if (!rows.empty() && rows.back() >= map.row_count(shard)) {
    return refusal("row {} is out of range: the shard has {} rows", rows.back(),
                   map.row_count(shard));
  }
  return {};
}

Result<void> check_states(const std::vector<std::uint32_t>& rows,
                          const std::vector<float>& states) {
  const auto wrong = std::ranges::find_if_not(states, is_sound_state);
  if (wrong == states.end()) return {};
  const auto at = static_cast<std::size_t>(wrong - states.begin());
  return refusal("row {} has an optimizer state of {}", rows[at], *wrong);
}

Result<void> check_hash_codes(std::uint32_t hash_bits, std::size_t tables, const ShardRows& rows) {
  for (std::size_t i = 0; i < rows.codes.size(); ++i) {
    if ((rows.codes[i] >> hash_bits) != 0) {
      return refusal("row {} has a hash code of {}, beyond {} bits", rows.rows[i / tables],
                     rows.codes[i], hash_bits);
    }
  }
  return {};
}

// Codes of a wide row: a neuron of the shard, then ascending features, then the number of features
// as padding.
Result<void> check_wide_codes(const ShardMap& map, ShardId shard, const ShardRows& rows) {
  const std::size_t width = map.codes_per_row(shard);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const auto codes = std::span(rows.codes).subspan(i * width, width);
    if (codes[0] >= map.neurons(shard).size()) {
      return refusal("row {} is of neuron {}: the shard has {}", rows.rows[i], codes[0],
                     map.neurons(shard).size());
    }
    const auto features = codes.subspan(1);
    const bool ascends =
        std::ranges::adjacent_find(features, [&](std::uint32_t a, std::uint32_t b) {
          return a >= b && b != map.features();
        }) == features.end();
    if (!ascends || features.back() > map.features()) {
      return refusal("row {} has features that do not ascend, or that the run does not have",
                     rows.rows[i]);
    }
  }
  return {};
}

}  // namespace

Result<void> check_rows(const ModelConfig& model, const ShardMap& map, ShardId shard,
                        const ShardRows& rows, RowsOf source) {
  const std::size_t count = rows.rows.size();
  const std::size_t width = map.row_width(shard);
  const std::size_t tables = map.codes_per_row(shard);
  if (rows.values.size() != count * width || rows.states.size() != count ||
      rows.codes.size() != count * tables ||
      rows.stale_codes.size() != (source == RowsOf::kHandOver ? count : 0)) {
    return refusal("the lists do not fit {} rows of {} values and {} hash codes", count, width,
                   tables);
  }
  if (map.is_wide() && source == RowsOf::kHandOver && count > 0) {
    return refusal("{} rows come without a hidden layer, where a shard is handed over without any",
                   count);
  }
  if (auto checked = check_row_numbers(map, shard, rows.rows); !checked) return checked;
  if (auto checked = check_states(rows.rows, rows.states); !checked) return checked;
  for (std::size_t i = 0; i < rows.values.size(); ++i) {
    // Written so that a NaN fails.
    if (!(std::abs(rows.values[i]) <= kWeightMagnitudeMax)) {
      return refusal("row {} has a weight of {}", rows.rows[i / width], rows.values[i]);
    }
  }
  if (auto checked = map.is_wide() ? check_wide_codes(map, shard, rows)
                                   : check_hash_codes(model.hash_bits, tables, rows);
      !checked) {
    return checked;
  }
  for (const std::uint8_t flag : rows.stale_codes) {
    if (flag > 1) return refusal("{} is not a flag", flag);
  }
  return {};
}

Result<void> check_update(const ShardMap& map, ShardId shard, const SparseUpdate& update) {
  const std::size_t count = update.rows.size();
  const std::size_t weights = map.weights_per_row(shard);
  const std::size_t biases = map.is_output(shard) ? count : 0;
  if (update.levels.size() != count * weights || update.scales.size() != count ||
      update.biases.size() != biases || update.states.size() != count) {
    return refusal("the lists do not fit {} rows of {} weights", count, weights);
  }
  if (auto checked = check_row_numbers(map, shard, update.rows); !checked) return checked;
  if (auto checked = check_states(update.rows, update.states); !checked) return checked;
  for (std::size_t i = 0; i < count; ++i) {
    const std::span levels = std::span(update.levels).subspan(i * weights, weights);
    if (!is_delta_scale(update.scales[i]) || !std::ranges::all_of(levels, is_delta_level) ||
        (biases > 0 && !is_finite_half(update.biases[i]))) {
      return refusal("row {} changes by more than a round can change it", update.rows[i]);
    }
  }
  return {};
}

}  // namespace gleaner
