// The things that are fixed for the life of a core: the model, the settings, and the plan and map
// that follow from the model. Immutable; the classes of the core share one by reference.
#pragma once

#include <utility>
#include <vector>

#include "common/check.hpp"
#include "common/model/run_plan.hpp"
#include "common/model/shard_map.hpp"
#include "master/core/events/core_config.hpp"

namespace gleaner {

struct RunSetup {
  // `model` is valid; `config.label_counts` has one entry per label.
  RunSetup(const ModelConfig& the_model, CoreConfig the_config, std::vector<BatchIndex> rate_cuts)
      : model(the_model),
        config(std::move(the_config)),
        plan(model, std::move(rate_cuts)),
        map(model) {
    GLEANER_CHECK(config.label_counts.size() == model.labels);
  }

  const ModelConfig model;
  const CoreConfig config;
  const RunPlan plan;
  const ShardMap map;
};

}  // namespace gleaner
