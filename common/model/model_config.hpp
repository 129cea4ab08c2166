// Everything that the arithmetic depends on besides the data. The trained model is a function of
// this structure and the training file only. It is sent to every volunteer and belongs to a store's
// identity.
#pragma once

#include <cstdint>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// The activation function of a hidden unit.
enum class HiddenUnits : std::uint8_t {
  kRelu = 0,    // negative sums become 0
  kLinear = 1,  // the sum itself
};

// The list of losses: a row NAME stands for Loss::kNAME, and for NAMELoss in
// common/train/kernel_losses.hpp.
#define GLEANER_LOSSES(LOSS) LOSS(Logistic)

#define GLEANER_LOSS_KIND(name) k##name,
enum class Loss : std::uint8_t { GLEANER_LOSSES(GLEANER_LOSS_KIND) kCount };
#undef GLEANER_LOSS_KIND

enum class Sampling : std::uint8_t {
  kLsh = 0,     // union of the query's buckets, and random negatives
  kRandom = 1,  // `active_cap` uniform negatives, for comparison
  kAll = 2,     // every neuron, for comparison
};

struct ModelConfig {
  // From the training file.
  std::uint64_t data_fingerprint = 0;  // XXH3 of the packed training set
  std::uint64_t points = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;

  // Without a hidden layer: most rows of a shard, which follow from the data
  // (storage/keep/initial_wide_rows.hpp).
  std::uint32_t wide_rows = 0;

  std::uint64_t seed = 1;
  // Width H, a multiple of 16. 0: no hidden layer; each output neuron has a wide row directly over
  // features (the wide part of Cheng et al. 2016, arXiv 1606.07792).
  std::uint32_t hidden = 128;
  HiddenUnits hidden_units = HiddenUnits::kRelu;
  std::uint32_t output_shards = 16;  // S; at most `labels`
  std::uint32_t input_shards = 1;    // H must divide into shards that are multiples of 16

  // Position in the run.
  std::uint32_t epochs = 5;
  std::uint32_t batch_examples = 128;  // B
  // C, batches between two checkpoints. An epoch is cut into rounds of C batches. If an epoch has
  // at most half as many batches, a round has as many whole epochs as fit (epochs_per_round), and
  // `epochs` is a multiple of that number.
  std::uint32_t round_batches = 64;
  std::uint32_t staleness = 2;  // s, batches between a forward pass and the last update it sees
  std::uint32_t staleness_rise =
      0;  // the lag grows from 1 to s by one every N batches; 0: s at once

  // Sampling of active neurons, in the terms of SLIDE (arXiv 1903.03129).
  Sampling sampling = Sampling::kLsh;
  std::uint32_t hash_bits = 8;      // K: each table has 2^K buckets
  std::uint32_t tables = 50;        // L
  std::uint32_t active_cap = 1000;  // negatives per example and layer; split evenly over the shards
  std::uint32_t random_negatives = 0;  // per example and layer, besides those from the tables
  // Touched rows are rehashed, or lists rebuilt, every N batches.
  std::uint32_t rehash_batches = 50;
  // Not 0 in stores of earlier versions, and not used.
  std::uint32_t feature_list = 0;
  // Without a hidden layer: features that a label with few examples keeps in its start row; the
  // length of a start row; the least weight in a feature's list, as a fraction of wide_scale or of
  // 16 if that is less; and the score above which an example trains a listed neuron.
  std::uint32_t wide_features = 64;
  float wide_scale = 10.0F;
  float wide_list_weight = 0.125F;
  float wide_score_min = -5.0F;

  // Optimizer: w -= rate * g / (sqrt(v) + epsilon), with one float v per row.
  float output_rate = 3e-3F;
  float input_rate = 3e-3F;
  float rate_decay = 1.0F;             // factor per epoch
  std::uint32_t warmup_batches = 0;    // the rate rises linearly over N batches
  float second_moment_decay = 0.999F;  // beta2
  float epsilon = 1e-8F;
  float dropout = 0.0F;          // fraction of quantized activations zeroed in training
  float feature_dropout = 0.0F;  // fraction of input features left out in training
  float input_scale = 1.0F;      // standard deviation of initial input weights
  float output_scale = 1.0F;     // initial output weights: uniform within +-output_scale/sqrt(H)
  // A round whose loss is N times the lowest loss of an earlier round has diverged: it is trained
  // again at half the learning rates. 0: no round diverges.
  float divergence_factor = 0.0F;
  std::int32_t gradient_step_log2 = -10;  // gradients are multiples of 2^this; from -13
  std::uint32_t activation_bits = 8;      // bits of a quantized activation with its sign; from 2

  // Fingerprint of the model that the run began with, instead of random weights; 0: none.
  std::uint64_t initial_fingerprint = 0;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// The last batch of an epoch may be smaller. Requires points and batch_examples.
std::uint64_t batches_per_epoch(const ModelConfig& config);
// 1 where a round is at most an epoch.
std::uint32_t epochs_per_round(const ModelConfig& config);

// Whether output neurons have wide rows: see `hidden`.
inline bool is_wide(const ModelConfig& config) {
  return config.hidden == 0;
}

// A configuration does not name its loss: there is one.
inline Loss loss_of(const ModelConfig& /*config*/) {
  return Loss::kLogistic;
}

// Whether a run's initial rows are stored, since the configuration does not determine them: rows of
// a model file, and wide rows.
inline bool begins_with_rows(const ModelConfig& config) {
  return config.initial_fingerprint != 0 || is_wide(config);
}

// Checks every field against its range and against the others. The error names the field.
Result<void> validate(const ModelConfig& config);

}  // namespace gleaner
