// From the hidden units' activations to what output shards are trained on: dropout, then 8-bit
// codes with one scale an example. Needs no weights, so whoever has the activations of all input
// shards can do it. Any thread may use it; loops run on the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "common/ids.hpp"
#include "common/model/model_config.hpp"
#include "common/thread_pool.hpp"
#include "schema/hidden_codes.hpp"

namespace gleaner {

class HiddenCoder {
 public:
  // `pool` outlives the coder.
  HiddenCoder(const ModelConfig& config, ThreadPool& pool);

  // `activations` (examples x H) is changed. Training (`batch` given) applies dropout by
  // (seed, batch, position, unit); evaluation (nullopt) does not.
  [[nodiscard]] HiddenCodes encode(std::span<float> activations,
                                   std::optional<BatchIndex> batch) const;

  // One example: changes `units` (H), writes its codes (H) and returns its scale. `position` is the
  // example's place in the batch.
  [[nodiscard]] float encode(std::span<float> units, std::optional<BatchIndex> batch,
                             std::size_t position, std::uint8_t* codes) const;

  // The factor by which a kept unit was scaled up, so that evaluation needs no correction.
  [[nodiscard]] float keep_scale() const { return keep_scale_; }

 private:
  void drop_units(BatchIndex batch, std::size_t position, std::span<float> units) const;

  ThreadPool& pool_;
  std::uint32_t hidden_;
  std::uint64_t seed_;
  std::uint64_t threshold_;  // of 2^24
  float keep_scale_;
};

}  // namespace gleaner
