// Everything the arithmetic depends on besides the data themselves. The trained model is a function
// of this structure and the training file; nothing else may reach a number. It travels to every
// volunteer and is part of a store's identity.
#pragma once

#include <cstdint>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// How a hidden unit turns its weighted sum into an activation.
enum class HiddenUnits : std::uint8_t {
  kRelu = 0,    // 0 where it is negative
  kLinear = 1,  // the sum itself
};

// The list of losses: a row NAME stands for Loss::kNAME, and for NAMELoss in
// common/train/kernel_losses.hpp.
#define GLEANER_LOSSES(LOSS) LOSS(Logistic)

#define GLEANER_LOSS_KIND(name) k##name,
enum class Loss : std::uint8_t { GLEANER_LOSSES(GLEANER_LOSS_KIND) kCount };
#undef GLEANER_LOSS_KIND

enum class Sampling : std::uint8_t {
  kLsh = 0,     // union of the query's buckets (plus random negatives)
  kRandom = 1,  // `active_cap` uniform negatives, for comparison
  kAll = 2,     // every neuron, for comparison
};

struct ModelConfig {
  // From the training file.
  std::uint64_t data_fingerprint = 0;  // XXH3 of the packed training set
  std::uint64_t points = 0;
  std::uint32_t features = 0;
  std::uint32_t labels = 0;

  // Without a hidden layer: rows of a shard at most; they follow from the data (initial_model.hpp).
  std::uint32_t wide_rows = 0;

  std::uint64_t seed = 1;
  // Width H, a multiple of 16. 0: there is no hidden layer, and each output neuron has a wide row
  // straight over features (the wide part of Cheng et al. 2016, arXiv 1606.07792).
  std::uint32_t hidden = 128;
  HiddenUnits hidden_units = HiddenUnits::kRelu;
  std::uint32_t output_shards = 16;  // S; at most `labels`
  std::uint32_t input_shards = 1;    // H must divide into shards that are multiples of 16

  // Position in the run.
  std::uint32_t epochs = 5;
  std::uint32_t batch_examples = 128;  // B
  // C, batches between two checkpoints: an epoch is cut into rounds of C or, where it has
  // half as many or fewer, a round has as many whole epochs as fit (epochs_per_round), and `epochs`
  // is a multiple of these.
  std::uint32_t round_batches = 64;
  std::uint32_t staleness = 2;  // s, batches between a forward pass and the last update it sees
  std::uint32_t staleness_rise =
      0;  // the lag grows from 1 to s by one every N batches; 0: s at once

  // Sampling of active neurons, in the terms of SLIDE (arXiv 1903.03129).
  Sampling sampling = Sampling::kLsh;
  std::uint32_t hash_bits = 8;      // K: each table has 2^K buckets
  std::uint32_t tables = 50;        // L
  std::uint32_t active_cap = 1000;  // negatives an example and layer; split evenly over the shards
  // An example and layer, besides those from the tables. Without a hidden layer: other examples of
  // the batch, whose labels are taken.
  std::uint32_t random_negatives = 0;
  // Touched rows are hashed again, or short lists are made again, every N batches.
  std::uint32_t rehash_batches = 50;
  // Without a hidden layer: neurons that a feature's list has, over the whole layer; and what a
  // wide row is at the start: the features that it keeps of a label with a few examples, and its
  // length.
  std::uint32_t feature_list = 64;
  std::uint32_t wide_features = 64;
  float wide_scale = 10.0F;

  // Optimizer: w -= rate * g / (sqrt(v) + epsilon), v one float a row.
  float output_rate = 3e-3F;
  float input_rate = 3e-3F;
  float rate_decay = 1.0F;             // factor an epoch
  std::uint32_t warmup_batches = 0;    // the rate rises linearly over N batches
  float second_moment_decay = 0.999F;  // beta2
  float epsilon = 1e-8F;
  float dropout = 0.0F;          // share of quantized activations zeroed in training
  float feature_dropout = 0.0F;  // share of input features left out in training
  float input_scale = 1.0F;      // standard deviation of initial input weights
  float output_scale = 1.0F;     // initial output weights: uniform within +-output_scale/sqrt(H)
  // A round whose loss is N times the lowest of a round before has diverged, and is trained
  // again at half the rates; 0: none ever has.
  float divergence_factor = 0.0F;
  std::int32_t gradient_step_log2 = -10;  // gradients travel in multiples of 2^this, from -13
  std::uint32_t activation_bits = 8;      // of a quantized activation, with its sign; from 2

  // The fingerprint of the model that the run began with, instead of weights drawn from the seed;
  // 0: of none.
  std::uint64_t initial_fingerprint = 0;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

// The last of an epoch may be smaller than the others. Requires points and batch_examples.
std::uint64_t batches_per_epoch(const ModelConfig& config);
// 1 where rounds are parts of an epoch.
std::uint32_t epochs_per_round(const ModelConfig& config);

// Whether output neurons have wide rows: see `hidden`.
inline bool is_wide(const ModelConfig& config) {
  return config.hidden == 0;
}

// A configuration does not name its loss: there is one.
inline Loss loss_of(const ModelConfig& /*config*/) {
  return Loss::kLogistic;
}

// Whether a run's first rows are stored, since they do not follow from the configuration alone:
// those of a model from a file, and wide rows.
inline bool begins_with_rows(const ModelConfig& config) {
  return config.initial_fingerprint != 0 || is_wide(config);
}

// Checks every field against its range and against the others. The error names the field.
Result<void> validate(const ModelConfig& config);

}  // namespace gleaner
