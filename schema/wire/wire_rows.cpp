// Rows and sparse updates: the bulk of what is downloaded, committed and stored.
#include <algorithm>

#include "common/half.hpp"
#include "common/model/row_delta.hpp"
#include "schema/compact_lists.hpp"
#include "schema/wire/records.capnp.h"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

std::vector<std::uint32_t> read_row_ids(capnp::Data::Reader data) {
  auto rows = read_values<std::uint32_t>("rows", data);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] <= rows[i - 1]) {
      malformed("rows", "row {} after row {}, must ascend", rows[i], rows[i - 1]);
    }
  }
  return rows;
}

// `entries` of all rows together: the same number in each row, at most `width_max`.
void check_width(const char* field, std::size_t entries, std::size_t rows, std::size_t width_max) {
  if (rows == 0 ? entries != 0 : entries % rows != 0 || entries / rows > width_max) {
    malformed(field, "{} entries for {} rows, at most {} a row", entries, rows, width_max);
  }
}

std::vector<float> read_states(capnp::Data::Reader data, std::size_t rows) {
  auto states = read_floats("states", data);
  if (states.size() != rows) malformed("states", "{} entries for {} rows", states.size(), rows);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] < 0) malformed("states", "entry {} is {}", i, states[i]);
  }
  return states;
}

constexpr std::size_t kRowWidthMax = std::size_t{kHiddenMax} + 1;

}  // namespace

void write(const ShardRows& from, wire::Rows::Builder to) {
  to.setRows(data_of(bytes_of(from.rows)));
  to.setValues(data_of(bytes_of(from.values)));
  to.setStates(data_of(bytes_of(from.states)));
  to.setCodes(data_of(pack_codes(from.codes, from.rows.size())));
  to.setStaleCodes(data_of(from.stale_codes));
}

ShardRows read(wire::Rows::Reader from) {
  ShardRows to;
  to.rows = read_row_ids(from.getRows());
  to.values = read_floats("values", from.getValues());
  check_width("values", to.values.size(), to.rows.size(), kRowWidthMax);
  to.states = read_states(from.getStates(), to.rows.size());
  to.codes = unpack_codes("codes", view(from.getCodes()), to.rows.size());
  to.stale_codes = read_values<std::uint8_t>("stale_codes", from.getStaleCodes());
  if (!to.stale_codes.empty() && to.stale_codes.size() != to.rows.size()) {
    malformed("stale_codes", "{} entries for {} rows", to.stale_codes.size(), to.rows.size());
  }
  const auto is_flag = [](std::uint8_t flag) { return flag <= 1; };
  if (!std::all_of(to.stale_codes.begin(), to.stale_codes.end(), is_flag)) {
    malformed("stale_codes", "an entry is neither 0 nor 1");
  }
  return to;
}

template <typename Update>
void write_update(const SparseUpdate& from, typename Update::Builder to) {
  to.setRows(data_of(bytes_of(from.rows)));
  to.setScales(data_of(bytes_of(from.scales)));
  // A store compresses as it likes, and its records are for ever.
  constexpr bool is_wire = std::is_same_v<Update, wire::Update>;
  to.setLevels(data_of(is_wire ? pack_levels_small(from.levels, from.rows.size())
                               : pack_levels(from.levels, from.rows.size())));
  to.setBiases(data_of(bytes_of(from.biases)));
  to.setStates(data_of(bytes_of(from.states)));
}

template <typename Update>
SparseUpdate read_update(typename Update::Reader from) {
  SparseUpdate to;
  to.rows = read_row_ids(from.getRows());
  const std::size_t rows = to.rows.size();
  to.scales = read_floats("scales", from.getScales());
  if (to.scales.size() != rows)
    malformed("scales", "{} entries for {} rows", to.scales.size(), rows);
  for (std::size_t i = 0; i < rows; ++i) {
    if (!is_delta_scale(to.scales[i])) malformed("scales", "entry {} is {}", i, to.scales[i]);
  }
  to.levels = unpack_levels("levels", view(from.getLevels()), rows);
  to.biases = read_values<std::uint16_t>("biases", from.getBiases());
  check_width("biases", to.biases.size(), rows, 1);
  for (std::size_t i = 0; i < to.biases.size(); ++i) {
    if (!is_finite_half(to.biases[i])) malformed("biases", "entry {} is not finite", i);
  }
  to.states = read_states(from.getStates(), to.rows.size());
  return to;
}

template void write_update<wire::Update>(const SparseUpdate& from, wire::Update::Builder to);
template void write_update<record::Update>(const SparseUpdate& from, record::Update::Builder to);
template SparseUpdate read_update<wire::Update>(wire::Update::Reader from);
template SparseUpdate read_update<record::Update>(record::Update::Reader from);

}  // namespace gleaner
