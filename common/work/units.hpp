// Units of work, as plain structs: what training is asked to do and what it answers, with the
// leases under which shards are held. They are messages too: schema/messages.hpp lists all of
// these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/bytes.hpp"
#include "common/ids.hpp"
#include "common/model/precision.hpp"
#include "common/model/shard_rows.hpp"

namespace gleaner {

// ---- Leases and shard state ---------------------------------------------------------------------

struct LeaseRef {
  ShardId shard{};
  LeaseEpoch epoch{};
  friend bool operator==(const LeaseRef&, const LeaseRef&) = default;
};

// Lends a shard. The holder requests chunks 0 .. chunks - 1 in any order, then sends ShardReady.
// Chunks below `base_chunks` hold rows of checkpoint `base_round`; the others hold newer rows of a
// hand-over. The loaded shard stands before batch `next_batch`.
struct LeaseGrant {
  LeaseRef lease;
  RoundIndex base_round = 0;
  BatchIndex next_batch = 0;
  std::uint32_t base_chunks = 0;
  std::uint32_t chunks = 0;
  std::vector<std::uint32_t> label_counts;  // one per neuron of the shard, for the initial bias
  // The holder has offered the shard as of `base_round`: there are no chunks and no label counts.
  bool is_held = false;
  friend bool operator==(const LeaseGrant&, const LeaseGrant&) = default;
};

struct ShardChunk {
  LeaseRef lease;
  std::uint32_t chunk = 0;
  ShardRows rows;
  friend bool operator==(const ShardChunk&, const ShardChunk&) = default;
};

// The holder has loaded every chunk and can train.
struct ShardReady {
  LeaseRef lease;
  friend bool operator==(const ShardReady&, const ShardReady&) = default;
};

// A shard's present state, in parts: the rows touched since its last commit, in full precision.
struct HandOver {
  LeaseRef lease;
  RoundIndex base_round = 0;  // absent rows are as of this checkpoint
  BatchIndex next_batch = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  ShardRows rows;
  friend bool operator==(const HandOver&, const HandOver&) = default;
};

// A shard that a volunteer still has from the lease `lease`.
struct OfferedShard {
  LeaseRef lease;
  ShardDigest digest;  // at the offer's checkpoint
  friend bool operator==(const OfferedShard&, const OfferedShard&) = default;
};

// ---- Training -----------------------------------------------------------------------------------

// The true labels of a batch's examples, as output neurons of some shards.
struct Positives {
  std::vector<std::uint32_t>
      offsets;  // examples + 1 entries; example i has neurons [offsets[i], offsets[i+1])
  std::vector<std::uint32_t> neurons;  // ascending within an example
  friend bool operator==(const Positives&, const Positives&) = default;
};

struct UnitBatch {
  BatchIndex batch = 0;
  SharedBytes hidden;     // packed QuantizedActivations, see quantized_activations.hpp
  Positives positives;    // only neurons of the unit's shards
  float output_rate = 0;  // learning rate of the output rows
};

// Train these shards on these consecutive batches, in order.
//
// Without a hidden layer a unit is a *shard-round*: one shard over all batches of a round. The
// holder requests the examples and their labels, so `batches` has a single entry, the round's first
// batch, without activations and positives. Its rate shows how often the learning rates have been
// halved.
struct TrainUnit {
  UnitId unit{};
  std::vector<LeaseRef> leases;    // ascending by shard
  std::vector<UnitBatch> batches;  // consecutive, ascending
  bool wants_gradient = true;      // false in a replay whose gradients are already known
  bool may_be_summed = false;      // a relay may add its gradients to other units' gradients
};

struct ShardOutcome {
  ShardId shard{};
  std::uint64_t gradient_digest = 0;  // of the shard's own gradient, even if not sent
  std::int64_t loss = 0;     // sum over examples and active neurons, in 2^-20 nats; not negative
  std::uint64_t active = 0;  // active neurons, summed over examples
  friend bool operator==(const ShardOutcome&, const ShardOutcome&) = default;
};

struct BatchResult {
  BatchIndex batch = 0;
  std::vector<ShardOutcome> shards;  // ascending; the unit's shards
  Bytes gradient;  // packed sum of dh over the shards, see quantized_gradient.hpp; may be empty
  friend bool operator==(const BatchResult&, const BatchResult&) = default;
};

// The result of a shard-round has an entry in `batches` for the round's first batch and, if there
// are more, a second entry for all others together, with the number of the second batch.
struct UnitResult {
  UnitId unit{};
  std::vector<BatchResult> batches;
  std::uint64_t compute_us = 0;  // time spent training, for balancing only
  // Set by a relay: the gradients are left out and follow in a RelaySum.
  bool is_summed = false;
  std::vector<std::uint64_t> checks;  // of gradients that may be summed, one per batch
  friend bool operator==(const UnitResult&, const UnitResult&) = default;
};

// A shard's sparse update at the end of `round`, in parts of ascending rows. The holder sends it
// without a request after the round's last batch, and has adopted the rounded values.
struct ShardCommit {
  LeaseRef lease;
  RoundIndex round = 0;
  std::uint32_t part = 0;
  std::uint32_t parts = 1;
  SparseUpdate update;
  friend bool operator==(const ShardCommit&, const ShardCommit&) = default;
};

// ---- Input shards that volunteers hold ----------------------------------------------------------

// A step of an input shard's work. The shard's arithmetic follows the order of the steps.
struct InputStep {
  enum class Kind : std::uint8_t {
    kForward,   // activations of a training batch
    kBackward,  // update by a batch's gradient
    kScore,     // activations of test examples
  };
  Kind kind = Kind::kForward;
  std::uint64_t index = 0;     // the batch; kScore: the first example in the evaluation's order
  std::uint32_t examples = 0;  // of the batch; kScore: number of examples
  float rate = 0;              // kBackward: learning rate of the input layer
  // kBackward: one per lease of the unit, see input_parts.hpp.
  std::vector<SharedBytes> gradients;
};

// Do these steps, in order, on each of these input shards.
struct InputUnit {
  UnitId unit{};
  std::vector<LeaseRef> leases;  // ascending by shard
  std::vector<InputStep> steps;
};

struct InputResult {
  UnitId unit{};
  // For each step that asks for activations, in order: one entry per lease of the unit, see
  // input_parts.hpp.
  std::vector<Bytes> activations;
  std::uint64_t compute_us = 0;
  friend bool operator==(const InputResult&, const InputResult&) = default;
};

// ---- Evaluation ---------------------------------------------------------------------------------

// Score every neuron of these shards exactly and return the best k of each example. Without a
// hidden layer, the examples begin at `first` in the evaluation's order.
struct EvalUnit {
  UnitId unit{};
  std::vector<LeaseRef> leases;  // ascending by shard
  std::uint32_t top_k = 5;
  SharedBytes hidden;  // packed QuantizedActivations
  std::uint64_t first = 0;
};

struct EvalResult {
  UnitId unit{};
  std::uint32_t top_k = 0;         // entries per example; fewer when the shards have fewer neurons
  std::vector<ScoredNeuron> best;  // examples x top_k: by descending score, then ascending neuron
  std::uint64_t compute_us = 0;
  friend bool operator==(const EvalResult&, const EvalResult&) = default;
};

// ---- Self-test ----------------------------------------------------------------------------------

// The digest of a kernel in the self-test (common/train/self_test/self_test.hpp).
struct KernelDigest {
  std::string kernel;
  std::uint64_t digest = 0;
  friend bool operator==(const KernelDigest&, const KernelDigest&) = default;
};

}  // namespace gleaner
