#include <algorithm>
#include <cmath>

#include "tools/plan/plan_parts.hpp"

namespace gleaner {
namespace {

// Examples of a batch share the neurons that tables bring them: they reach as many rows as if each
// chose this fraction of them independently. Counted on four data sets, see tools/plan/PLAN.md.
constexpr double kOwnChoice = 0.5;
constexpr double kGradientBits = 1.0;  // of an example's largest entry, if its step were 1
constexpr double kUnitBytes = 120;     // of a unit besides its examples
constexpr double kResultBytes = 60;    // of a result, and for each shard of a batch:
constexpr double kOutcomeBytes = 32;
constexpr double kLevelBytes = 0.4;     // of a committed weight, as zstd leaves them
constexpr double kOutputRowBytes = 14;  // of a committed row besides: id, scale, bias, state
constexpr double kInputRowBytes = 12;   // no bias
constexpr double kRecordBytes = 28;     // of a row or an entry in the store: key, checksum, filter
constexpr double kStagedRowBytes = 15;  // of a staged row besides its weights, of four bits
constexpr double kStagedTwice = 2;      // to the log, and to a table
constexpr double kMergedAgain = 0.75;   // of what folds write: written again where files are merged
constexpr double kSegmentBytes = 1448;  // TCP's, over Ethernet
constexpr double kHeaderBytes = 66;
constexpr double kWire = 1 + kHeaderBytes / kSegmentBytes;
constexpr double kAcknowledged = kHeaderBytes / (2 * kSegmentBytes);  // every other segment

// Bytes of one entry of a gradient on the wire.
double gradient_bytes(const ModelConfig& model) {
  return (kGradientBits - model.gradient_step_log2) / 8;
}

// Bytes of a varint of a gap between ascending ids.
double varint_bytes(double gap) {
  return std::max(1.0, std::ceil(std::log2(std::max(gap, 2.0)) / 7));
}

// A cost that depends on how much of a layer the caches hold, by the layers measured, over their
// bytes.
double by_layer(const MachineCosts& costs, double bytes, double MachineCosts::LayerRow::*figure) {
  const auto place = [&](const MachineCosts::LayerRow& layer) {
    return std::log(layer.rows * 4.0 * (costs.hidden + costs.tables));
  };
  const double wanted = std::log(bytes);
  if (wanted <= place(costs.row.front())) return costs.row.front().*figure;
  for (std::size_t i = 1; i < costs.row.size(); ++i) {
    const double begin = place(costs.row[i - 1]);
    const double end = place(costs.row[i]);
    if (wanted > end) continue;
    const double part = (wanted - begin) / (end - begin);
    return costs.row[i - 1].*figure * (1 - part) + costs.row[i].*figure * part;
  }
  return costs.row.back().*figure;
}

// A byte of files, of which `bytes` are written.
double file_byte(const MachineCosts& costs, double bytes) {
  constexpr double kSmall = 256 << 20;
  constexpr double kLarge = 8 * kSmall;
  const double part = std::clamp(std::log(bytes / kSmall) / std::log(kLarge / kSmall), 0.0, 1.0);
  return costs.small_file_byte * (1 - part) + costs.large_file_byte * part;
}

// A message out and one in, with an example's bytes of both.
double messages(const MachineCosts& costs, const Shape& s, double bytes) {
  return 2 * costs.message + s.batch * bytes * costs.message_byte;
}

// The fraction of the hidden units that are not zero, before dropout.
double units_on(const PlanInput& input) {
  return input.model.hidden_units == HiddenUnits::kLinear ? 1 : input.rectified_on;
}

// The input layer's part of `t`, an example's of the volunteer that has most of it.
void add_input_traffic(const PlanInput& input, const Shape& s, Traffic& t) {
  if (s.input_share == 0) return;
  const double units = s.hidden * s.input_share;
  const double counting = units_on(input) * (1 - input.model.dropout);
  t.input_down = kWire * (units / 8 + s.input_held +
                          counting * units * gradient_bytes(input.model) + kUnitBytes / s.batch);
  t.input_up = kWire * (units / 8 + 4 * units_on(input) * units + kResultBytes / s.batch);
  const double features = std::max(input.features_per_point, 1e-3);
  t.points_down = kWire * features * (4 + varint_bytes(s.features / features)) / input.model.epochs;
  t.commit_up +=
      kWire * s.input_rows * (kLevelBytes * units + kInputRowBytes * s.input_held) / s.examples();
}

// Seconds of a batch on all output shards, as the sum of its parts.
double layer_seconds(const PlanInput& input, const MachineCosts& costs, const Shape& s,
                     double bytes) {
  const double h = s.hidden / costs.hidden;
  const double fetch = by_layer(costs, bytes, &MachineCosts::LayerRow::seconds) * h;
  const double rehashed = rows_reached(s, s.batch * input.model.rehash_batches);
  return s.batch * s.active * costs.visit * h + s.rows_a_batch * fetch + s.labels * costs.scan +
         s.batch * s.shards * costs.finish * h +
         rehashed * costs.rehash_row * h * (s.tables / costs.tables) / input.model.rehash_batches;
}

// The seconds of what surrounds it on every volunteer.
double around_seconds(const MachineCosts& costs, const Shape& s) {
  return s.batch * (s.hidden / costs.hidden) *
         (costs.query * s.tables / costs.tables + costs.unpack_codes + costs.pack_gradient);
}

// The bytes of the rows of a part of the output layer and of their entries.
double layer_bytes(const Shape& s, double share) {
  return share * s.labels * 4 * (s.hidden + s.tables);
}

}  // namespace

Shape shape_of(const PlanInput& input, const Scale& scale) {
  const ModelConfig& m = input.model;
  Shape s{};
  s.labels = m.labels;
  s.features = m.features + 1.0;  // the bias is a row as well
  s.hidden = m.hidden;
  s.tables = m.sampling == Sampling::kLsh ? m.tables : 0.0;
  s.batch = m.batch_examples;
  s.epoch_batches = std::ceil(static_cast<double>(m.points) / s.batch);
  // Rounds are about equally long.
  const double span = epochs_per_round(m) * s.epoch_batches;
  s.batches = span / std::ceil(span / m.round_batches) * scale[Resource::kRound];
  const bool has_tables = m.sampling == Sampling::kLsh;
  const double chosen = m.sampling == Sampling::kAll ? s.labels : m.active_cap;
  s.drawn = has_tables ? m.random_negatives : m.sampling == Sampling::kRandom ? chosen : 0.0;
  s.active = std::min(s.labels, chosen + (has_tables ? s.drawn : 0.0) + input.labels_per_point);
  s.drawn = std::min(s.drawn, s.active);
  s.rows_a_batch = rows_reached(s, s.batch);
  s.output_rows = rows_reached(s, s.examples());
  s.input_rows = features_reached(input.features_per_point * s.examples(), s.features);
  const double run = static_cast<double>(m.points) * m.epochs;
  s.stored_rows = rows_reached(s, run);
  s.stored_features = features_reached(input.features_per_point * run, s.features);
  s.shards = std::min(s.labels, m.output_shards * scale[Resource::kShards]);
  s.holders = std::min<double>(input.volunteers.count, s.shards);
  s.held = std::ceil(s.shards / s.holders);
  s.share = s.held / s.shards;
  if (input.lends_input) {
    s.input_shards = m.input_shards;
    s.input_holders = std::min<double>(input.volunteers.count, s.input_shards);
    s.input_held = std::ceil(s.input_shards / s.input_holders);
    s.input_share = s.input_held / s.input_shards;
  }
  return s;
}

double step_seconds(const PlanInput& input, const MachineCosts& costs) {
  const Shape s = shape_of(input, Scale());
  return (layer_seconds(input, costs, s, layer_bytes(s, 1)) + around_seconds(costs, s)) / s.batch;
}

double features_reached(double choices, double features) {
  return features * -std::expm1(-kOwnChoice * choices / features);
}

double rows_reached(const Shape& s, double examples) {
  const double choices = kOwnChoice * (s.active - s.drawn) + s.drawn;
  return s.labels * -std::expm1(-choices * examples / s.labels);
}

StoredBytes stored_bytes(const PlanInput& input, const Shape& s) {
  const double row = 4 * (s.hidden + 1) + kRecordBytes;  // weights and optimizer state
  const double code_bytes = std::ceil(input.model.hash_bits / 8.0);
  const double entry = s.tables > 0 ? s.tables * code_bytes + 1 + kRecordBytes : 0;
  return {row + 4 + entry, row, s.hidden / 2 + kStagedRowBytes};
}

Traffic traffic_of(const PlanInput& input, const Shape& s) {
  const double on = units_on(input) * (1 - input.model.dropout);
  const double codes = 4 + s.hidden * std::min(1.0, 1.0 / 8 + on);
  const double labels = std::max(input.labels_per_point * s.share, 1e-3);
  Traffic t;
  t.unit_down =
      kWire * (codes + 1 + labels * varint_bytes(s.labels / labels) + kUnitBytes / s.batch);
  t.unit_up = kWire * (1 + on * s.hidden * gradient_bytes(input.model) +
                       (kResultBytes + kOutcomeBytes * s.held) / s.batch);
  t.commit_up =
      kWire * s.output_rows * s.share * (kLevelBytes * s.hidden + kOutputRowBytes) / s.examples();
  const double output_commit = t.commit_up;
  add_input_traffic(input, s, t);
  const double down = t.unit_down + t.input_down + t.points_down;
  const double up = t.unit_up + t.input_up + t.commit_up;
  t.down = down + kAcknowledged * up;
  t.up = up + kAcknowledged * down;
  const double input_commit = t.commit_up - output_commit;
  const double master_down =
      s.holders * t.unit_down + s.input_holders * (t.input_down + t.points_down);
  const double master_up =
      s.holders * (t.unit_up + output_commit) + s.input_holders * (t.input_up + input_commit);
  t.master_down = master_down + kAcknowledged * master_up;
  t.master_up = master_up + kAcknowledged * master_down;
  t.download =
      kWire *
      (s.stored_rows * s.share *
           (4 * (s.hidden + 3) + (s.tables > 0 ? s.tables * input.model.hash_bits / 8 : 0)) +
       s.stored_features * (4 * s.hidden * s.input_share + 8 * s.input_held));
  return t;
}

Work work_of(const PlanInput& input, const MachineCosts& costs, const Shape& s, const Traffic& t) {
  const double h = s.hidden / costs.hidden;
  const double bytes = layer_bytes(s, input.is_one_machine ? 1.0 : s.share);
  const double whole = by_layer(costs, bytes, &MachineCosts::LayerRow::whole);
  // Costs that are not measured with all processors busy are taken to suffer from that as steps do.
  const double busy = by_layer(costs, bytes, &MachineCosts::LayerRow::busy);
  const double features = s.batch * h * input.features_per_point *
                          by_layer(costs, bytes, &MachineCosts::LayerRow::feature);
  Work w{};
  w.layer = whole * layer_seconds(input, costs, s, bytes);
  w.volunteer =
      whole * around_seconds(costs, s) + busy * messages(costs, s, t.unit_down + t.unit_up);
  w.worker = s.batch * h * (costs.pack_codes + s.holders * costs.add_gradient);
  w.network = messages(costs, s, t.unit_down + t.unit_up);
  if (s.input_share > 0) {
    w.input = features;
    w.input_holder =
        s.batch * h * s.input_share * (costs.unpack_unit_gradient + costs.pack_activations) +
        messages(costs, s, t.input_down + t.input_up);
    w.worker += s.batch * h * (costs.code_activations + costs.pack_unit_gradient);
    w.input_network = s.batch * h * s.input_share * costs.unpack_activations +
                      messages(costs, s, t.input_down + t.input_up);
  } else {
    w.worker += features;
  }
  // Commits pass the network as bytes as well.
  const double sent = s.examples() * t.commit_up * s.holders * costs.message_byte;
  const double sent_rows = s.output_rows + (s.input_share > 0 ? s.input_rows : 0.0);
  w.output_commit = s.output_rows * (costs.commit_row + costs.encode_row) * h + sent;
  w.input_commit = s.input_rows * costs.input_commit_row * h;
  if (s.input_share > 0) w.input_commit += s.input_rows * costs.encode_row * h;
  w.take_commits = sent_rows * costs.decode_row * h + sent;
  for (double* seconds : {&w.worker, &w.network, &w.input, &w.input_holder, &w.input_network,
                          &w.output_commit, &w.input_commit, &w.take_commits}) {
    *seconds *= busy;
  }
  const StoredBytes bytes_of = stored_bytes(input, s);
  const double folded = s.output_rows * bytes_of.output_row + s.input_rows * bytes_of.input_row;
  const double written =
      (1 + kMergedAgain) * folded + kStagedTwice * s.rows() * bytes_of.staged_row;
  const double byte = file_byte(costs, written);
  w.stage = s.rows() * costs.stage_row * h;
  w.fold = s.rows() * costs.fold_row * h + folded * byte;
  w.store = w.stage + w.fold;
  w.store_processor = busy * (s.rows() * costs.store_row_program * h + written * byte);
  return w;
}

}  // namespace gleaner
