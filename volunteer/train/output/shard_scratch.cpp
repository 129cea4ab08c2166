#include "volunteer/train/output/shard_scratch.hpp"

#include "schema/gradient.hpp"

namespace gleaner {

static_assert(kGradientBits + kGradientGuardBits == 32, "sums of units hold sums of gradients");

void ShardScratch::clear_gradient(std::size_t index, std::uint32_t examples, std::uint32_t hidden) {
  batches[index].sums.assign(std::size_t{examples} * hidden, 0);
  batches[index].checks.assign(examples * kCheckWords, 0);
}

void ShardScratch::add_gradient_to(std::size_t index, std::size_t begin,
                                   std::span<std::int32_t> sum) const {
  const std::uint32_t* const own = batches[index].sums.data() + begin;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const std::uint32_t units = (static_cast<std::uint32_t>(sum[i]) << kGradientGuardBits) + own[i];
    sum[i] = static_cast<std::int32_t>(units) >> kGradientGuardBits;
  }
}

std::uint64_t ShardScratch::memory_bytes() const {
  std::uint64_t bytes = chooser.memory_bytes();
  for (const BatchScratch& batch : batches) {
    bytes += (batch.sums.capacity() + batch.checks.capacity() + batch.shard_checks.capacity()) *
             sizeof(std::uint32_t);
  }
  return bytes;
}

}  // namespace gleaner
