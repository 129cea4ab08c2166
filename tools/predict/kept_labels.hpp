// The labels of an exported file, and their output rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/result.hpp"
#include "storage/keep/model_rows.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/predict/export_model.hpp"

namespace gleaner {

// A label is left out when its neuron was never active in
// any of the parts: no update ever touched its row, which is therefore not stored.
class KeptLabels {
 public:
  explicit KeptLabels(std::uint32_t labels) : place_(labels, kLeftOut) {}

  static Result<KeptLabels> of(const std::vector<ModelPart>& parts, bool prune) {
    KeptLabels rows(parts.front().run->identity().model.labels);
    std::vector<bool> is_kept(rows.place_.size(), !prune);
    for (const ModelPart& part : parts) {
      if (!prune) break;
      const auto marked = mark_stored(*part.run, is_kept);
      if (!marked) return name_folder(marked.error(), part.name);
    }
    for (std::uint32_t label = 0; label < is_kept.size(); ++label) {
      if (!is_kept[label]) continue;
      rows.place_[label] = static_cast<std::uint32_t>(rows.labels_.size());
      rows.labels_.push_back(label);
    }
    return rows;
  }

  // Nothing when it is left out.
  [[nodiscard]] std::optional<std::uint32_t> place(std::uint32_t label) const {
    return place_[label] == kLeftOut ? std::nullopt : std::optional(place_[label]);
  }

  // Ascending.
  [[nodiscard]] const std::vector<std::uint32_t>& labels() const { return labels_; }

  [[nodiscard]] std::size_t left_out() const { return place_.size() - labels_.size(); }

 private:
  static Result<void> mark_stored(RunStore& run, std::vector<bool>& is_kept) {
    const ShardMap& map = run.shard_map();
    for (std::uint32_t s = 0; s < map.output_shards(); ++s) {
      const std::uint32_t begin = map.neurons(ShardId{s}).begin;
      auto visited = visit_model_rows(run, ShardId{s}, [&](const ModelRow& row) {
        if (row.is_stored) is_kept[map.label_of_neuron(begin + row.neuron)] = true;
      });
      if (!visited) return visited;
    }
    return {};
  }

  static constexpr std::uint32_t kLeftOut = UINT32_MAX;
  std::vector<std::uint32_t> place_;
  std::vector<std::uint32_t> labels_;
};

}  // namespace gleaner
