// Checks that tables cannot express: fields that must agree, entries in order.
#include <algorithm>
#include <functional>

#include "common/portable_math.hpp"
#include "schema/wire/tables.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kRowWidthMax = std::size_t{kHiddenMax} + 1;

// Checks that `key` of the entries strictly ascends.
template <typename Entry, typename Key>
void check_ascending(const char* field, const std::vector<Entry>& entries, const Key& key,
                     const char* above = "the one before") {
  for (std::size_t i = 1; i < entries.size(); ++i) {
    if (std::invoke(key, entries[i]) <= std::invoke(key, entries[i - 1])) {
      malformed(field, "entry {} is not above {}", i, above);
    }
  }
}

// Checks that the batches of a unit are consecutive.
template <typename Batch>
void check_batches(const std::vector<Batch>& batches) {
  for (std::size_t i = 1; i < batches.size(); ++i) {
    const BatchIndex last = batches[i - 1].batch;
    const BatchIndex next = batches[i].batch;
    if (next == 0 || next - 1 != last) malformed("batches", "batch {} after batch {}", next, last);
  }
}

void check_row_ids(const std::vector<std::uint32_t>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i] <= rows[i - 1]) {
      malformed("rows", "row {} after row {}, must ascend", rows[i], rows[i - 1]);
    }
  }
}

void check_one_a_row(const char* field, std::size_t entries, std::size_t rows) {
  if (entries != rows) malformed(field, "{} entries for {} rows", entries, rows);
}

void check_states(const std::vector<float>& states, std::size_t rows) {
  check_one_a_row("states", states.size(), rows);
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i] < 0) malformed("states", "entry {} is {}", i, states[i]);
  }
}

// `entries` of all rows together must be the same number per row, at most `width_max`.
void check_width(const char* field, std::size_t entries, std::size_t rows, std::size_t width_max) {
  if (rows == 0 ? entries != 0 : entries % rows != 0 || entries / rows > width_max) {
    malformed(field, "{} entries for {} rows, at most {} a row", entries, rows, width_max);
  }
}

bool is_before(const ScoredNeuron& a, const ScoredNeuron& b) {
  return a.score > b.score || (a.score == b.score && a.neuron < b.neuron);
}

}  // namespace

// ---- Joining -----------------------------------------------------------------------------------

ModelConfig read_model(const char* field, const std::vector<ModelText>& texts) {
  const Result<ModelConfig> model = model_from_fields({texts.begin(), texts.end()});
  if (!model) malformed(field, "{}", model.error().message);
  return *model;
}

// ---- Leases and shard state --------------------------------------------------------------------

void check_fields(const LeaseGrant& read) {
  if (read.base_chunks > read.chunks) {
    malformed("base_chunks", "{} of {} chunks", read.base_chunks, read.chunks);
  }
  if (read.is_held && (read.chunks > 0 || !read.label_counts.empty())) {
    malformed("is_held", "with {} chunks and {} label counts", read.chunks,
              read.label_counts.size());
  }
}

void check_fields(const ShardOffer& read) {
  check_ascending("shards", read.shards, [](const OfferedShard& s) { return s.lease.shard; });
}

void check_fields(const ShardRows& read) {
  const std::size_t rows = read.rows.size();
  check_row_ids(read.rows);
  check_width("values", read.values.size(), rows, kRowWidthMax);
  check_states(read.states, rows);
  if (!read.stale_codes.empty()) check_one_a_row("stale_codes", read.stale_codes.size(), rows);
  if (std::ranges::any_of(read.stale_codes, [](std::uint8_t flag) { return flag > 1; })) {
    malformed("stale_codes", "an entry is neither 0 nor 1");
  }
}

void check_fields(const SparseUpdate& read) {
  const std::size_t rows = read.rows.size();
  check_row_ids(read.rows);
  check_one_a_row("scales", read.scales.size(), rows);
  for (std::size_t i = 0; i < rows; ++i) {
    if (!is_delta_scale(read.scales[i])) malformed("scales", "entry {} is {}", i, read.scales[i]);
  }
  check_width("biases", read.biases.size(), rows, 1);
  for (std::size_t i = 0; i < read.biases.size(); ++i) {
    if (!is_finite_half(read.biases[i])) malformed("biases", "entry {} is not finite", i);
  }
  check_states(read.states, rows);
}

// ---- Units and their results -------------------------------------------------------------------

void check_fields(const TrainUnit& read) {
  check_ascending("leases", read.leases, &LeaseRef::shard);
  check_batches(read.batches);
}

void check_fields(const ShardOutcome& read) {
  if (read.active > kPairsPerBatchMax) malformed("active", "{} is out of range", read.active);
  if (read.loss < 0 || static_cast<std::uint64_t>(read.loss) >> kPairLossBits > read.active) {
    malformed("loss", "{} is out of range for {} active neurons", read.loss, read.active);
  }
}

void check_fields(const BatchResult& read) {
  for (std::size_t i = 0; i < read.shards.size(); ++i) {
    const ShardId shard = read.shards[i].shard;
    if (raw(shard) >= kOutputShardsMax || (i > 0 && read.shards[i - 1].shard >= shard)) {
      malformed("shards", "shard {} is out of range or order", raw(shard));
    }
  }
}

void check_fields(const UnitResult& read) {
  check_batches(read.batches);
  if (!read.checks.empty() && read.checks.size() != read.batches.size()) {
    malformed("checks", "{} for {} batches", read.checks.size(), read.batches.size());
  }
}

void check_fields(const InputUnit& read) {
  check_ascending("leases", read.leases, &LeaseRef::shard);
  for (const InputStep& step : read.steps) {
    const bool is_backward = step.kind == InputStep::Kind::kBackward;
    const std::size_t expected = is_backward ? read.leases.size() : 0;
    if (step.gradients.size() != expected) {
      malformed("steps.gradients", "{} entries, expected {}", step.gradients.size(), expected);
    }
  }
}

void check_fields(const PointsRequest& read) {
  check_ascending("points", read.points, std::identity(), "the last");
}

void check_fields(const Points& read) {
  check_ascending("points", read.points, std::identity(), "the last");
  if (read.offsets.size() != read.points.size() + 1) {
    malformed("features", "of {} points, expected {}", read.offsets.size() - 1, read.points.size());
  }
  if (read.values.size() != read.features.size()) {
    malformed("values", "{} entries for {} features", read.values.size(), read.features.size());
  }
  const std::size_t labelled = read.labels.offsets.size() - 1;
  if (labelled > 0 && labelled != read.points.size()) {
    malformed("labels", "of {} points, expected {}", labelled, read.points.size());
  }
}

void check_fields(const EvalUnit& read) {
  check_ascending("leases", read.leases, &LeaseRef::shard);
}

void check_fields(const EvalResult& read) {
  const std::size_t entries = read.best.size();
  const bool is_whole = read.top_k == 0 ? entries == 0 : entries % read.top_k == 0;
  if (!is_whole || entries > std::size_t{kBatchExamplesMax} * read.top_k) {
    malformed("best", "{} entries with {} an example", entries, read.top_k);
  }
  for (std::size_t i = 0; i < entries; ++i) {
    const ScoredNeuron& scored = read.best[i];
    if (scored.neuron >= kLabelsMax) malformed("best.neurons", "entry {} is {}", i, scored.neuron);
    if (i % read.top_k != 0 && !is_before(read.best[i - 1], scored)) {
      malformed("best", "entry {} is out of order", i);
    }
  }
}

void check_fields(const RelaySum& read) {
  if (read.units.empty() || read.units.size() > kOutputShardsMax) {
    malformed("units", "{} entries, must be 1 to {}", read.units.size(), kOutputShardsMax);
  }
}

// ---- Status ------------------------------------------------------------------------------------

void check_fields(const ShardEntry& read) {
  if (read.chunks_sent > read.chunks) {
    malformed("chunks_sent", "{} of {} chunks", read.chunks_sent, read.chunks);
  }
}

void check_fields(const RunStatus& read) {
  for (const ShardEntry& shard : read.shards) {
    if (shard.holder && *shard.holder >= read.volunteers.size()) {
      malformed("shards.holder", "{} of {}", *shard.holder + 1, read.volunteers.size());
    }
  }
}

}  // namespace gleaner
