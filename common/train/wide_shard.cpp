#include "common/train/wide_shard.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "common/counter_random.hpp"
#include "common/limits.hpp"

namespace gleaner {
namespace {

// The bias learns as the weight of a feature would that every example has with this value squared.
constexpr float kBiasSquare = 0.05F;
// A negative that is as unlikely as this teaches nothing.
constexpr float kProbabilityMin = 1e-3F;
constexpr float kLossMax = 1024.0F;       // nats of a pair
constexpr float kLossUnits = 1048576.0F;  // of a nat
// Examples from which on it is quicker to spread a neuron's features out than to look each up.
constexpr std::size_t kPairsSpread = 3;

}  // namespace

WideShard::WideShard(const ModelConfig& config, const ShardMap& map, const Kernels& kernels,
                     ShardId shard, std::span<const std::uint32_t> label_counts)
    : config_(config),
      map_(map),
      kernels_(kernels),
      shard_(shard),
      neurons_(map.neurons(shard)),
      rows_(map.row_count(shard), kWideWeights),
      listed_(std::size_t{map.row_count(shard)} * kWideWeights),
      features_(std::size_t{map.row_count(shard)} * kWideWeights, config.features),
      owners_(map.row_count(shard)),
      is_loaded_(map.row_count(shard)),
      begins_(neurons_.size()),
      sizes_(neurons_.size()) {
  for (const std::uint32_t count : label_counts) is_lone_.push_back(count < 2 ? 1 : 0);
}

Result<void> WideShard::load(const ShardRows& rows) {
  const std::size_t width = map_.row_width(shard_);
  const std::size_t codes = map_.codes_per_row(shard_);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const std::uint32_t row = rows.rows[i];
    rows_.write(row, std::span(rows.values).subspan(i * width, width), rows.states[i]);
    rows_.mark_stored(row);
    std::copy_n(rows_.weights(row), kWideWeights, listed_.data() + std::size_t{row} * kWideWeights);
    owners_[row] = rows.codes[i * codes];
    std::copy_n(rows.codes.begin() + static_cast<std::ptrdiff_t>(i * codes + 1), kWideWeights,
                features_.begin() + static_cast<std::ptrdiff_t>(row) * kWideWeights);
    is_loaded_[row] = 1;
  }
  return {};
}

Result<void> WideShard::load_touched(const ShardRows& rows) {
  const std::size_t width = map_.row_width(shard_);
  const std::size_t codes = map_.codes_per_row(shard_);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    if (is_loaded_[rows.rows[i]] == 0) {
      return Error{ErrorCode::kProtocol,
                   fmt::format("shard {}: row {} was handed over, and the shard does not have it",
                               raw(shard_), rows.rows[i])};
    }
    rows_.touch(rows.rows[i]);
    rows_.write(rows.rows[i], std::span(rows.values).subspan(i * width, width), rows.states[i]);
    for (std::size_t k = 0; k < kWideWeights; ++k) {
      listed_[std::size_t{rows.rows[i]} * kWideWeights + k] =
          std::bit_cast<float>(rows.codes[i * codes + 1 + k]);
    }
  }
  return {};
}

void WideShard::freshen() {
  std::copy_n(rows_.weights(0), listed_.size(), listed_.data());
}

// At a checkpoint the lists know the committed weights.
bool WideShard::step_back(std::uint32_t commits) {
  if (!rows_.step_back(commits)) return false;
  freshen();
  return true;
}

// A neuron's rows are those that follow each other and name it. Where a master says otherwise, some
// are not used.
void WideShard::finish_loading() {
  std::ranges::fill(sizes_, 0);
  for (std::uint32_t row = 0; row < owners_.size() && is_loaded_[row] != 0;) {
    const std::uint32_t first = row;
    while (row < owners_.size() && is_loaded_[row] != 0 && owners_[row] == owners_[first]) ++row;
    const std::size_t begin = std::size_t{first} * kWideWeights;
    const auto own = std::span(features_).subspan(begin, std::size_t{row} * kWideWeights - begin);
    begins_[owners_[first]] = begin;
    const auto end = std::ranges::find(own, config_.features);
    sizes_[owners_[first]] = static_cast<std::uint32_t>(end - own.begin());
  }
}

void WideShard::match(std::uint32_t neuron, const ExampleView& example, Matches& matches) const {
  const std::span<const std::uint32_t> own = features(neuron);
  auto next = own.begin();
  for (std::size_t k = 0; k < example.features.size(); ++k) {
    next = std::lower_bound(next, own.end(), example.features[k]);
    if (next == own.end()) return;
    if (*next != example.features[k]) continue;
    matches.push_back(
        {begins_[neuron] + static_cast<std::size_t>(next - own.begin()), example.values[k]});
    ++next;
  }
}

void WideShard::match_spread(std::uint32_t neuron, const ExampleView& example,
                             WideScratch& scratch) const {
  for (std::size_t k = 0; k < example.features.size(); ++k) {
    const std::uint32_t place = scratch.places[example.features[k]];
    if (place == 0) continue;
    scratch.matches.push_back({begins_[neuron] + place - 1, example.values[k]});
  }
}

void WideShard::update(std::uint32_t neuron, float step, const Matches& matches) {
  const std::size_t first = begins_[neuron] / kWideWeights;
  rows_.touch(static_cast<std::uint32_t>(first));
  rows_.biases()[first] -= step * kBiasSquare;
  float* const weights = rows_.weights(0);
  std::size_t touched = first;
  for (const WideScratch::Match& match : matches) {
    const std::size_t row = match.at / kWideWeights;
    if (row != touched) rows_.touch(static_cast<std::uint32_t>(row));
    touched = row;
    weights[match.at] -= step * match.value;
  }
}

void WideShard::train(std::span<const WidePair> pairs, std::span<const ExampleView> examples,
                      float rate, WideScratch& scratch, ShardOutcome& outcome) {
  scratch.places.resize(config_.features);
  for (std::size_t begin = 0, end = 0; begin < pairs.size(); begin = end) {
    while (end < pairs.size() && pairs[end].neuron == pairs[begin].neuron) ++end;
    train_neuron(pairs.subspan(begin, end - begin), examples, rate, scratch, outcome);
  }
}

void WideShard::train_neuron(std::span<const WidePair> pairs, std::span<const ExampleView> examples,
                             float rate, WideScratch& scratch, ShardOutcome& outcome) {
  const std::uint32_t neuron = pairs.front().neuron;
  const std::size_t first = begins_[neuron] / kWideWeights;
  const float own = rows_.state(static_cast<std::uint32_t>(first));
  const bool is_spread = pairs.size() >= kPairsSpread;
  const std::span<const std::uint32_t> features = this->features(neuron);
  for (std::uint32_t i = 0; is_spread && i < features.size(); ++i) {
    scratch.places[features[i]] = i + 1;
  }
  const float* const weights = rows_.weights(0);
  // Whole lanes, as the kernel has them; one is in use, since each pair sees the update of the one
  // before.
  std::array<float, kLanes> scores{};
  std::array<float, kLanes> probabilities{};
  std::array<float, kLanes> losses{};
  for (const WidePair& pair : pairs) {
    scratch.matches.clear();
    if (is_spread) {
      match_spread(neuron, examples[pair.example], scratch);
    } else {
      match(neuron, examples[pair.example], scratch.matches);
    }
    float score = bias(neuron);
    float squares = 0;
    for (const WideScratch::Match& match : scratch.matches) {
      score += match.value * weights[match.at];
      squares += match.value * match.value;
    }
    if (pair.is_true != 0) score -= own * squares;
    scores[0] = score;
    kernels_.logistic(scores.data(), probabilities.data(), losses.data(), kLanes);
    const float probability = probabilities[0];
    const float loss = std::clamp(losses[0] - (pair.is_true != 0 ? score : 0.0F), 0.0F, kLossMax);
    outcome.loss += static_cast<std::int64_t>(loss * kLossUnits + 0.5F);
    outcome.gradient_digest +=
        mix64(std::bit_cast<std::uint32_t>(score) | std::uint64_t{neuron} << 32);
    ++outcome.active;
    const bool teaches = pair.is_true != 0 ? is_lone_[neuron] == 0 : probability >= kProbabilityMin;
    if (!teaches) continue;
    update(neuron, rate * (probability - static_cast<float>(pair.is_true)), scratch.matches);
  }
  for (std::size_t i = 0; is_spread && i < features.size(); ++i) scratch.places[features[i]] = 0;
}

std::vector<SparseUpdate> WideShard::commit() {
  constexpr std::size_t kBytesPerRow =
      3 * sizeof(std::uint32_t) + sizeof(std::uint16_t) + kWideWeights;
  const std::size_t part_rows = rows_per_message(kBytesPerRow);
  std::vector<SparseUpdate> parts(1);
  for (const std::uint32_t row : rows_.touched()) {
    if (parts.back().rows.size() == part_rows) parts.emplace_back();
    rows_.commit_row(row, parts.back(), kernels_);
  }
  if (parts.size() > 1 && parts.back().rows.empty()) parts.pop_back();
  rows_.end_commit();
  freshen();
  return parts;
}

std::vector<ShardRows> WideShard::touched_rows() const {
  return rows_.touched_parts(map_.codes_per_row(shard_), [&](std::uint32_t row, ShardRows& part) {
    part.codes.push_back(owners_[row]);
    for (std::size_t k = 0; k < kWideWeights; ++k) {
      part.codes.push_back(
          std::bit_cast<std::uint32_t>(listed_[std::size_t{row} * kWideWeights + k]));
    }
    part.stale_codes.push_back(0);
  });
}

std::uint64_t WideShard::memory_bytes() const {
  return rows_.memory_bytes() +
         (features_.capacity() + owners_.capacity() + sizes_.capacity() + listed_.capacity()) *
             sizeof(std::uint32_t) +
         begins_.capacity() * sizeof(std::size_t) + is_loaded_.capacity() + is_lone_.capacity();
}

}  // namespace gleaner
