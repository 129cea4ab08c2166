#include "tests/unit/common/train/train_fixture.hpp"

#include "common/model/shard_rows.hpp"
#include "common/train/sim_hash.hpp"

namespace gleaner::test {

void StoredShard::apply(const ModelConfig& config, const LeaseGrant& grant,
                        const SparseUpdate& update) {
  const ShardMap map(config);
  const std::size_t width = map.row_width(grant.lease.shard);
  RowCodes row_codes(config);
  for (std::size_t i = 0; i < update.rows.size(); ++i) {
    const std::uint32_t index = update.rows[i];
    Row& row = rows[index];
    if (row.values.empty()) {
      row.values.resize(width);
      initial_row(config, map, grant.lease.shard, index, grant.label_counts[index], row.values);
    }
    add_row_delta(update, i, row.values);
    row.state = update.states[i];
    const auto codes = row_codes.of(row.values, width);
    row.codes.assign(codes.begin(), codes.end());
  }
}

ShardRows StoredShard::read() const {
  ShardRows result;
  for (const auto& [index, row] : rows) {
    result.rows.push_back(index);
    result.values.insert(result.values.end(), row.values.begin(), row.values.end());
    result.states.push_back(row.state);
    result.codes.insert(result.codes.end(), row.codes.begin(), row.codes.end());
  }
  return result;
}

ShardDigest StoredShard::digest(ShardId shard) const {
  ShardDigest digest;
  for (const auto& [index, row] : rows) {
    std::vector<float> floats = row.values;
    floats.push_back(row.state);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(floats.data());
    ++digest.rows;
    digest.sum += row_digest(shard, index, {bytes, floats.size() * sizeof(float)});
  }
  return digest;
}

}  // namespace gleaner::test
