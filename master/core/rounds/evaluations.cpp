#include "master/core/rounds/evaluations.hpp"

#include <algorithm>

namespace gleaner {

void Evaluations::begin(Instant now) {
  began_ = now;
  const CoreConfig& config = run_.config;
  const std::uint64_t points = config.evaluate_sample == 0
                                   ? config.test_points
                                   : std::min(config.evaluate_sample, config.test_points);
  current_.emplace(points, config.evaluate_chunk, config.evaluate_chunks_in_flight,
                   run_.map.output_shards(), config.top_k);
}

void Evaluations::finished(RoundIndex checkpoint, const Evaluation& result) {
  last_ = result;
  current_.reset();
  evaluated_ = checkpoint;
  is_recorded_ = false;
}

}  // namespace gleaner
