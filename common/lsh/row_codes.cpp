#include "common/lsh/row_codes.hpp"

#include <algorithm>

#include "common/check.hpp"
#include "common/model/shard_map.hpp"

namespace gleaner {

RowCodes::RowCodes(const ModelConfig& config)
    : tables_(ShardMap(config).tables()),
      sim_hash_(tables_ == 0 ? nullptr : std::make_unique<SimHash>(config, default_kernels())) {}

std::span<const std::uint32_t> RowCodes::of(std::span<const float> values, std::size_t row_width) {
  GLEANER_CHECK(row_width > 0 && values.size() % row_width == 0);
  const std::size_t count = values.size() / row_width;
  codes_.resize(count * tables_);
  for (std::size_t begin = 0; begin < count && tables_ > 0; begin += kHashRowsMax) {
    const std::size_t end = std::min(count, begin + kHashRowsMax);
    rows_.clear();
    for (std::size_t i = begin; i < end; ++i) rows_.push_back(values.data() + i * row_width);
    sim_hash_->hash_rows(rows_, std::span(codes_).subspan(begin * tables_, rows_.size() * tables_),
                         scratch_);
  }
  return codes_;
}

}  // namespace gleaner
