#include "common/train/wide/wide_shard.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "common/counter_random.hpp"
#include "common/portable_math.hpp"

namespace gleaner {
namespace {

// The bias learns like the weight of a feature whose square is this and which every example has.
constexpr float kBiasSquare = 0.05F;
// A negative with a lower probability is not trained.
constexpr float kProbabilityMin = 1e-3F;
// A negative of a label without examples with a lower one is not trained.
constexpr float kProbabilityAnswered = 0.5F;
constexpr float kLossMax = 1024.0F;       // nats of a pair
constexpr float kLossUnits = 1048576.0F;  // units of loss per nat
constexpr std::size_t kClosedRoundsKept = 2;

using RowWeights = std::array<float, kWideWeights>;

// A row's weights, whole.
RowWeights widened(const float* weights, std::size_t size) {
  RowWeights whole{};
  std::copy_n(weights, size, whole.begin());
  return whole;
}

bool is_zero(float value) {
  return std::bit_cast<std::uint32_t>(value) == 0;
}

}  // namespace

WideRows::WideRows(std::uint32_t rows, std::uint32_t no_feature)
    : no_feature_(no_feature),
      sizes_(rows, kNotLoaded),
      begins_(rows),
      ends_(rows),
      open_at_(rows, kUnchanged) {
  // Reserves room for full rows: unwritten pages take no memory, and growing would copy.
  weights_.reserve(std::size_t{rows} * kWideWeights);
  features_.reserve(std::size_t{rows} * kWideWeights);
}

void WideRows::append(std::uint32_t row, std::span<const float> values,
                      std::span<const std::uint32_t> features, float state) {
  GLEANER_CHECK(!is_loaded(row) && values.size() == kWideWeights + 1 &&
                features.size() == kWideWeights);
  std::size_t size = kWideWeights;
  while (size > 0 && features[size - 1] == no_feature_ && is_zero(values[size - 1])) --size;
  begins_[row] = weights_.size();
  sizes_[row] = static_cast<std::uint8_t>(size);
  order_.push_back(row);
  weights_.insert(weights_.end(), values.begin(),
                  values.begin() + static_cast<std::ptrdiff_t>(size));
  features_.insert(features_.end(), features.begin(),
                   features.begin() + static_cast<std::ptrdiff_t>(size));
  ends_[row] = {values[kWideWeights], state};
}

void WideRows::lay_out() {
  if (order_.empty()) return;
  AlignedVector<float> weights;
  AlignedVector<std::uint32_t> features;
  weights.reserve(weights_.size());
  features.reserve(features_.size());
  std::ranges::sort(order_);
  for (const std::uint32_t row : order_) {
    const std::size_t from = std::exchange(begins_[row], weights.size());
    const std::size_t end = from + sizes_[row];
    weights.insert(weights.end(), weights_.data() + from, weights_.data() + end);
    features.insert(features.end(), features_.data() + from, features_.data() + end);
  }
  weights_ = std::move(weights);
  features_ = std::move(features);
  order_ = {};
}

void WideRows::keep(std::uint32_t row) {
  if (closed_.size() == kClosedRoundsKept) {
    // A round begins: the oldest copies are no longer needed, but their memory is.
    open_ = std::move(closed_.front());
    open_.rows.clear();
    open_.records.clear();
    closed_.erase(closed_.begin());
  }
  // Reserves the most that can be needed: unwritten pages take no memory.
  if (open_.records.capacity() == 0) {
    open_.rows.reserve(rows());
    open_.records.reserve(weights_.size() + std::size_t{rows()} * 3);
  }
  const std::size_t at = open_.records.size();
  const std::size_t own = size(row);
  open_.records.resize(at + record_size(row));
  float* const record = open_.records.data() + at;
  std::copy_n(weights_.data() + begins_[row], own, record);
  record[own] = ends_[row].bias;
  record[own + 1] = ends_[row].state;
  open_.rows.push_back(row);
  open_at_[row] = static_cast<std::uint32_t>(at / 2);
}

void WideRows::read(std::uint32_t row, std::span<float> values) const {
  GLEANER_CHECK(values.size() == kWideWeights + 1);
  const RowWeights whole = widened(weights_.data() + begins_[row], size(row));
  std::ranges::copy(whole, values.begin());
  values[kWideWeights] = ends_[row].bias;
}

std::vector<std::uint32_t> WideRows::touched() const {
  std::vector<std::uint32_t> result;
  result.reserve(open_.rows.size());
  for (std::uint32_t row = 0; row < rows(); ++row) {
    if (open_at_[row] != kUnchanged) result.push_back(row);
  }
  return result;
}

void WideRows::commit_row(std::uint32_t row, SparseUpdate& update, const Kernels& kernels) {
  GLEANER_CHECK(open_at_[row] != kUnchanged);
  const std::size_t own = size(row);
  const float* const record = open_.records.data() + std::size_t{open_at_[row]} * 2;
  const RowWeights committed = widened(record, own);
  RowWeights values = widened(weights_.data() + begins_[row], own);
  const float committed_bias = record[own];
  const std::size_t before = update.levels.size();
  update.levels.resize(before + kWideWeights);
  const float scale = kernels.round_delta(committed.data(), values.data(),
                                          update.levels.data() + before, kWideWeights);
  const std::uint16_t bias_half = to_half(ends_[row].bias - committed_bias);
  ends_[row].bias = committed_bias + from_half(bias_half);
  bool is_changed = scale != 0.0F || (bias_half & 0x7fffu) != 0;
  is_changed |= std::bit_cast<std::uint32_t>(ends_[row].state) !=
                std::bit_cast<std::uint32_t>(record[own + 1]);
  if (is_changed) {
    update.rows.push_back(row);
    update.scales.push_back(scale);
    update.biases.push_back(bias_half);
    update.states.push_back(ends_[row].state);
  } else {
    update.levels.resize(before);
    // Adding a zero would turn a weight of -0 into +0, and the store would not see that change.
    values = committed;
    ends_[row].bias = committed_bias;
  }
  std::copy_n(values.begin(), own, weights_.data() + begins_[row]);
}

void WideRows::end_commit() {
  std::ranges::fill(open_at_, kUnchanged);
  closed_.push_back(std::exchange(open_, {}));
  // A round without a touched row has not made room for its copies.
  if (closed_.size() > kClosedRoundsKept) closed_.erase(closed_.begin());
}

bool WideRows::step_back(std::uint32_t commits) {
  if (commits > closed_.size()) return false;
  put_back(open_);
  open_.rows.clear();
  open_.records.clear();
  std::ranges::fill(open_at_, kUnchanged);
  for (; commits > 0; --commits) {
    put_back(closed_.back());
    closed_.pop_back();
  }
  return true;
}

void WideRows::put_back(const Copies& copies) {
  const float* record = copies.records.data();
  for (const std::uint32_t row : copies.rows) {
    const std::size_t own = size(row);
    std::copy_n(record, own, weights_.data() + begins_[row]);
    ends_[row] = {record[own], record[own + 1]};
    record += record_size(row);
  }
}

ShardDigest WideRows::digest(ShardId shard) const {
  ShardDigest digest;
  std::array<float, kWideWeights + 2> row{};
  for (std::uint32_t r = 0; r < rows(); ++r) {
    if (!is_loaded(r)) continue;
    read(r, std::span(row).first(kWideWeights + 1));
    row.back() = ends_[r].state;
    ++digest.rows;
    digest.sum += row_digest(
        shard, r, {reinterpret_cast<const std::uint8_t*>(row.data()), row.size() * sizeof(float)});
  }
  return digest;
}

std::uint64_t WideRows::memory_bytes() const {
  std::uint64_t bytes =
      sizes_.capacity() + begins_.capacity() * sizeof(std::size_t) + ends_.capacity() * sizeof(End);
  const std::size_t words = order_.capacity() + weights_.size() + features_.size() +
                            open_at_.capacity() + open_.rows.size() + open_.records.size();
  bytes += words * sizeof(std::uint32_t);
  for (const Copies& copies : closed_) {
    bytes += (copies.rows.size() + copies.records.size()) * sizeof(float);
  }
  return bytes;
}

WideShard::WideShard(const ModelConfig& config, const ShardMap& map, const Kernels& kernels,
                     ShardId shard, std::span<const std::uint32_t> label_counts)
    : config_(config),
      map_(map),
      kernels_(kernels),
      loss_(loss_kernels(kernels, config)),
      shard_(shard),
      neurons_(map.neurons(shard)),
      rows_(map.row_count(shard), config.features),
      owners_(map.row_count(shard)),
      places_(neurons_.size()) {
  examples_few_.reserve(label_counts.size());
  for (const std::uint32_t count : label_counts) {
    examples_few_.push_back(static_cast<std::uint8_t>(std::min(count, 2U)));
  }
  measure_memory();
}

Result<void> WideShard::load(const ShardRows& rows) {
  const std::size_t width = map_.row_width(shard_);
  const std::size_t codes = map_.codes_per_row(shard_);
  for (std::size_t i = 0; i < rows.rows.size(); ++i) {
    const std::uint32_t row = rows.rows[i];
    const auto of_row = std::span(rows.codes).subspan(i * codes, codes);
    rows_.append(row, std::span(rows.values).subspan(i * width, width), of_row.subspan(1),
                 rows.states[i]);
    owners_[row] = of_row[0];
  }
  measure_memory();
  return {};
}

Result<void> WideShard::load_touched(const ShardRows& rows) {
  if (rows.rows.empty()) return {};
  return refuse("shard {}: wide rows are not handed over within a round", raw(shard_));
}

bool WideShard::step_back(std::uint32_t commits) {
  const bool is_back = rows_.step_back(commits);
  measure_memory();
  return is_back;
}

// A neuron's rows are consecutive rows that name it. If a master sends others, they are not used.
void WideShard::finish_loading() {
  rows_.lay_out();
  for (Place& place : places_) place.size = 0;
  for (std::uint32_t row = 0; row < rows_.rows() && rows_.is_loaded(row);) {
    const std::uint32_t first = row;
    std::size_t size = 0;
    for (; row < rows_.rows() && rows_.is_loaded(row) && owners_[row] == owners_[first]; ++row) {
      size += rows_.size(row);
    }
    const auto own = std::span(rows_.features() + rows_.begin(first), size);
    const auto end = std::ranges::find(own, config_.features);
    places_[owners_[first]] = {rows_.begin(first), first,
                               static_cast<std::uint32_t>(end - own.begin())};
  }
  measure_memory();
}

void WideShard::update(std::uint32_t neuron, float step, std::span<const WideMatch> matches) {
  const Place& place = places_[neuron];
  rows_.touch(place.row);
  rows_.bias(place.row) -= step * kBiasSquare;
  float* const weights = rows_.weights() + place.begin;
  std::uint32_t touched = place.row;
  for (const WideMatch& match : matches) {
    const std::uint32_t row = place.row + match.at / kWideWeights;
    if (row != touched) rows_.touch(row);
    touched = row;
    weights[match.at] -= step * match.value;
  }
}

void WideShard::train(std::uint32_t neuron, std::span<const WideMatch> matches, bool is_true,
                      float rate, ShardOutcome& outcome) {
  const Place& place = places_[neuron];
  const float* const weights = rows_.weights() + place.begin;
  float score = rows_.bias(place.row);
  float squares = 0;
  for (const WideMatch& match : matches) {
    score += match.value * weights[match.at];
    squares += match.value * match.value;
  }
  if (is_true) score -= rows_.state(place.row) * squares;
  const PairStep pair = loss_.pair(score, is_true);
  const float loss = std::clamp(pair.loss, 0.0F, kLossMax);
  outcome.loss += static_cast<std::int64_t>(loss * kLossUnits + 0.5F);
  outcome.gradient_digest +=
      mix64(std::bit_cast<std::uint32_t>(score) | std::uint64_t{neuron} << 32);
  ++outcome.active;
  const std::uint8_t examples = examples_few_[neuron];
  const float least = examples > 0 ? kProbabilityMin : kProbabilityAnswered;
  const bool teaches = is_true ? examples > 1 : pair.probability >= least;
  if (teaches) update(neuron, rate * pair.delta, matches);
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
  measure_memory();
  return parts;
}

void WideShard::measure_memory() {
  memory_bytes_ = rows_.memory_bytes() + owners_.capacity() * sizeof(std::uint32_t) +
                  places_.capacity() * sizeof(Place) + examples_few_.capacity();
}

}  // namespace gleaner
