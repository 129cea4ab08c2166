#include "storage/infer/stored_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "common/model/precision.hpp"
#include "common/model/row_checks.hpp"
#include "common/model/shard_rows.hpp"
#include "common/train/exact_top.hpp"
#include "common/train/prepared_examples.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kRowsPerTask = 256;
constexpr const char* kNormaliseSetting = "data.l2_normalise";

ModelConfig without_tables(ModelConfig config) {
  config.sampling = Sampling::kAll;
  return config;
}

// A faulty program can have written a record with a valid checksum.
Result<void> check_weights(ShardId shard, std::uint32_t first_row,
                           const std::vector<float>& values) {
  if (are_sound_weights(values)) return {};
  return Error{ErrorCode::kCorrupt,
               fmt::format("shard {} has weights beyond any that training gives, in its rows from "
                           "{} on; restore the store from a backup",
                           raw(shard), first_row)};
}

// Merges, for each example, two complete lists and keeps the best.
void merge_into(std::vector<ScoredNeuron>& best, const std::vector<ScoredNeuron>& other,
                std::size_t examples, std::uint32_t top_k) {
  if (best.empty()) {
    best = other;
    return;
  }
  const std::size_t own_width = best.size() / examples;
  const std::size_t other_width = other.size() / examples;
  std::vector<ScoredNeuron> merged;
  merged.reserve(examples * std::min<std::size_t>(top_k, own_width + other_width));
  for (std::size_t e = 0; e < examples; ++e) {
    const std::array<std::span<const ScoredNeuron>, 2> lists = {
        std::span<const ScoredNeuron>(best).subspan(e * own_width, own_width),
        std::span<const ScoredNeuron>(other).subspan(e * other_width, other_width)};
    const std::vector<ScoredNeuron> kept = merge_top_k(lists, top_k);
    merged.insert(merged.end(), kept.begin(), kept.end());
  }
  best = std::move(merged);
}

}  // namespace

Result<bool> trained_on_normalised_points(const RunIdentity& identity) {
  const auto found = identity.settings.find(kNormaliseSetting);
  if (found == identity.settings.end()) return true;  // the master's default
  if (found->second == "true") return true;
  if (found->second == "false") return false;
  return Error{ErrorCode::kCorrupt, fmt::format("the run's setting {} is '{}', not true or false",
                                                kNormaliseSetting, found->second)};
}

StoredModel::StoredModel(std::unique_ptr<RunStore> run, ThreadPool& pool,
                         std::uint64_t kept_bytes_max)
    : run_(std::move(run)),
      pool_(pool),
      kernels_(default_kernels()),
      kept_bytes_max_(kept_bytes_max),
      scoring_config_(without_tables(run_->identity().model)),
      map_(scoring_config_),
      context_{scoring_config_, map_, kernels_, nullptr},
      kept_(map_.output_shards()) {
  if (!map_.is_wide()) input_.emplace(run_->identity().model, pool, kernels_);
}

Result<std::unique_ptr<StoredModel>> StoredModel::open(std::unique_ptr<RunStore> run,
                                                       ThreadPool& pool,
                                                       std::uint64_t kept_bytes_max) {
  const ModelConfig& config = run->identity().model;
  if (run->checkpoint() == 0 && !begins_with_rows(config)) {
    return Error{ErrorCode::kNotFound,
                 "the run has no checkpoint yet, and an untrained model's predictions are noise; "
                 "wait until the master has finished the first round"};
  }
  const Result<bool> is_normalised = trained_on_normalised_points(run->identity());
  if (!is_normalised) return is_normalised.error();
  std::unique_ptr<StoredModel> model(new StoredModel(std::move(run), pool, kept_bytes_max));
  model->is_normalised_ = *is_normalised;
  if (auto loaded = model->load_input(); !loaded) return loaded.error();
  return model;
}

Result<void> StoredModel::visit_rows(ShardId shard,
                                     const std::function<Result<void>(const ShardRows&)>& visit) {
  return run_->visit_rows(shard, [&](std::uint32_t begin, const ShardRows& rows) -> Result<void> {
    if (auto sound = check_weights(shard, begin, rows.values); !sound) return sound;
    return visit(rows);
  });
}

Result<void> StoredModel::load_input() {
  for (std::uint32_t i = 0; i < map_.input_shards(); ++i) {
    const ShardId shard = map_.input_shard(i);
    auto loaded =
        visit_rows(shard, [&](const ShardRows& rows) { return input_->load_rows(shard, rows); });
    if (!loaded) return loaded;
  }
  return {};
}

Result<void> StoredModel::load_wide() {
  if (wide_ != nullptr) return {};
  wide_shards_.clear();
  std::vector<const WideShard*> shards;
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    const ShardId shard{s};
    wide_shards_.push_back(std::make_unique<WideShard>(config(), map_, kernels_, shard));
    WideShard& made = *wide_shards_.back();
    auto loaded = visit_rows(shard, [&](const ShardRows& rows) -> Result<void> {
      if (auto fits = check_rows(config(), map_, shard, rows, RowsOf::kCheckpoint); !fits) {
        return Error{ErrorCode::kCorrupt,
                     fmt::format("shard {}: {}; restore the store from a backup", raw(shard),
                                 fits.error().message)};
      }
      return made.load(rows);
    });
    if (!loaded) return loaded;
    made.finish_loading();
    kept_bytes_ += made.memory_bytes();
    shards.push_back(&made);
  }
  wide_ = std::make_unique<WideIndex>(config().features, shards);
  return {};
}

std::uint32_t StoredModel::entries(std::uint32_t top_k) const {
  return std::min(top_k, config().labels);
}

Result<std::vector<ScoredLabel>> StoredModel::top(std::span<const ExampleView> examples,
                                                  std::uint32_t top_k) {
  if (examples.empty() || top_k == 0) return std::vector<ScoredLabel>();
  if (!map_.is_wide()) return top(encode(examples), top_k);
  if (auto loaded = load_wide(); !loaded) return loaded.error();
  const UnitLengths scaled(examples, config().features);
  const std::size_t count = entries(top_k);
  std::vector<ScoredNeuron> best(examples.size() * count);
  std::vector<WideIndex::Scratch> scratch(pool_.threads());
  pool_.parallel_for(examples.size(), [&](std::size_t e, unsigned worker) {
    wide_->top(scaled.views()[e], std::span(best).subspan(e * count, count), scratch[worker]);
  });
  return labels_of(best);
}

Result<std::vector<ScoredLabel>> StoredModel::top(const QuantizedActivations& codes,
                                                  std::uint32_t top_k) {
  if (codes.examples == 0 || top_k == 0) return std::vector<ScoredLabel>();
  std::vector<ScoredNeuron> best;
  for (std::uint32_t s = 0; s < map_.output_shards(); ++s) {
    std::unique_ptr<OutputShard> read;
    const Result<const OutputShard*> shard = output_shard(ShardId{s}, read);
    if (!shard) return shard.error();
    const OutputShard* const shards[] = {*shard};
    merge_into(best, exact_top(shards, codes, top_k, kernels_, pool_), codes.examples, top_k);
  }
  return labels_of(best);
}

std::vector<Contribution> StoredModel::why(const ExampleView& example, std::uint32_t label,
                                           std::size_t count) const {
  std::vector<Contribution> parts;
  if (wide_ == nullptr) return parts;
  const std::uint32_t neuron = map_.neuron_of_label(label);
  const WideShard& shard = *wide_shards_[raw(map_.shard_of_neuron(neuron))];
  const std::uint32_t own = neuron - shard.neurons().begin;
  const std::span<const std::uint32_t> features = shard.features(own);
  const UnitLengths scaled({&example, 1}, config().features);
  const ExampleView& view = scaled.views().front();
  for (std::size_t k = 0; k < view.features.size(); ++k) {
    const auto at = std::ranges::lower_bound(features, view.features[k]);
    if (at == features.end() || *at != view.features[k]) continue;
    parts.push_back({view.features[k], view.values[k] * shard.weights(own)[at - features.begin()]});
  }
  std::ranges::sort(parts, [](const Contribution& a, const Contribution& b) {
    const float left = std::abs(a.value);
    const float right = std::abs(b.value);
    return left > right || (left == right && a.feature < b.feature);
  });
  parts.resize(std::min(parts.size(), count));
  return parts;
}

std::vector<ScoredLabel> StoredModel::labels_of(const std::vector<ScoredNeuron>& best) const {
  std::vector<ScoredLabel> labels;
  labels.reserve(best.size());
  for (const ScoredNeuron& scored : best) {
    labels.push_back({map_.label_of_neuron(scored.neuron), scored.score});
  }
  return labels;
}

Result<const OutputShard*> StoredModel::output_shard(ShardId shard,
                                                     std::unique_ptr<OutputShard>& read) {
  std::unique_ptr<OutputShard>& kept = kept_[raw(shard)];
  if (kept != nullptr) return static_cast<const OutputShard*>(kept.get());
  Result<std::unique_ptr<OutputShard>> made = read_output_shard(shard);
  if (!made) return made.error();
  const std::uint64_t bytes = (*made)->memory_bytes();
  const bool fits = bytes <= kept_bytes_max_ - kept_bytes_;
  if (fits) kept_bytes_ += bytes;
  std::unique_ptr<OutputShard>& owner = fits ? kept : read;
  owner = std::move(*made);
  return static_cast<const OutputShard*>(owner.get());
}

Result<std::unique_ptr<OutputShard>> StoredModel::read_output_shard(ShardId shard) {
  const std::uint32_t rows = map_.row_count(shard);
  const std::size_t width = map_.row_width(shard);
  const std::vector<std::uint32_t> label_counts = run_->label_counts(shard);
  auto made = std::make_unique<OutputShard>(context_, shard);
  std::vector<std::uint8_t> is_stored(rows);
  auto read = visit_rows(shard, [&](const ShardRows& stored) {
    for (std::size_t i = 0; i < stored.rows.size(); ++i) {
      is_stored[stored.rows[i]] = 1;
      made->load(stored.rows[i], std::span(stored.values).subspan(i * width, width),
                 stored.states[i], {});
    }
    return Result<void>();
  });
  if (!read) return read.error();
  // Rows that training never touched are not stored.
  pool_.parallel_for((rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::size_t task, unsigned) {
    std::vector<float> values(width);
    const auto end =
        static_cast<std::uint32_t>(std::min<std::size_t>(rows, (task + 1) * kRowsPerTask));
    for (auto row = static_cast<std::uint32_t>(task * kRowsPerTask); row < end; ++row) {
      if (is_stored[row] != 0) continue;
      initial_row(scoring_config_, map_, shard, row, label_counts[row], values);
      made->load(row, values, 0.0F, {});
    }
  });
  return made;
}

}  // namespace gleaner
