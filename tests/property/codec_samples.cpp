// The fixed samples. Their encoded bytes stand in codec_golden.txt: a change here is a change
// there.
#include "common/work/input_parts.hpp"
#include "common/work/quantized_activations.hpp"
#include "common/work/quantized_gradient.hpp"
#include "tests/property/codec_messages.hpp"

namespace gleaner::testing {
namespace {

constexpr LeaseRef kLease{ShardId{7}, LeaseEpoch{0x1122334455}};

QuantizedActivations sample_codes() {
  QuantizedActivations codes{2, 16, {0.5F, 0.25F}, std::vector<std::uint8_t>(32)};
  codes.codes[1] = 3;
  codes.codes[15] = 200;
  codes.codes[16] = 0xff;  // -1
  return codes;
}

ModelConfig sample_model() {
  ModelConfig model;
  model.data_fingerprint = 0xfeedfacecafebeef;
  model.points = 1'111;
  model.features = 2'222;
  model.labels = 3'333;
  model.seed = 44;
  model.hidden = 64;
  model.hidden_units = HiddenUnits::kLinear;
  model.output_shards = 5;
  model.input_shards = 2;
  model.epochs = 6;
  model.batch_examples = 77;
  model.round_batches = 8;
  model.staleness = 9;
  model.staleness_rise = 10;
  model.sampling = Sampling::kAll;
  model.hash_bits = 10;
  model.tables = 11;
  model.active_cap = 1'212;
  model.random_negatives = 13;
  model.rehash_batches = 14;
  model.output_rate = 0.015F;
  model.input_rate = 0.016F;
  model.rate_decay = 0.17F;
  model.warmup_batches = 18;
  model.second_moment_decay = 0.19F;
  model.epsilon = 2e-3F;
  model.dropout = 0.21F;
  model.feature_dropout = 0.25F;
  model.input_scale = 2.2F;
  model.output_scale = 2.3F;
  model.divergence_factor = 3.0F;
  model.gradient_step_log2 = -11;
  model.initial_fingerprint = 0x26;
  return model;
}

ShardRows sample_rows() {
  ShardRows rows;
  rows.rows = {3, 9};
  rows.values = {1.0F, -2.0F, 0.5F, 0.0F, -0.0F, 1e-40F};
  rows.states = {0.0F, 4.0F};
  rows.codes = {1, 2, 3, 511};
  rows.stale_codes = {0, 1};
  return rows;
}

std::vector<Message> joining_samples() {
  return {Hello{1,
                3,
                "0.1.0",
                "caf\xc3\xa9",
                8,
                1u << 30,
                "avx2",
                5.5F,
                "secret",
                3,
                9,
                {{"dot", 0x1122334455667788}}},
          Welcome{2, "0.1.1", sample_model(), 1000, 5000, 14, 15, LeaseEpoch{16}, "birds",
                  "Names birds by their songs."},
          Refusal{ErrorCode::kInvite, "Ask for an invite.", true}};
}

std::vector<Message> lease_samples() {
  return {LeaseGrant{kLease, 4, 260, 2, 3, {0, 1, 127, 128, 70'000}},
          ChunkRequest{kLease, 2},
          ShardChunk{kLease, 1, sample_rows()},
          ShardReady{kLease},
          ReleaseRequest{kLease},
          HandOver{kLease, 4, 300, 1, 2, sample_rows()},
          Revoke{kLease}};
}

std::vector<Message> training_samples() {
  const QuantizedActivations codes = sample_codes();
  const auto packed = std::make_shared<const Bytes>(pack(codes));
  const std::vector<LeaseRef> leases{kLease, {ShardId{9}, LeaseEpoch{2}}};
  std::vector<std::int32_t> gradient(32);
  gradient[1] = -100;
  gradient[16] = 7;
  const TrainUnit unit{UnitId{31},
                       leases,
                       {{70, packed, {{0, 2, 3}, {5, 900, 0}}}, {71, packed, {{0, 0}, {}}}},
                       false,
                       true};
  const UnitResult result{UnitId{31},
                          {{70, {{ShardId{7}, 0xabcdef, 5, 6}}, pack_gradient(codes, gradient)},
                           {71, {{ShardId{7}, 1, 2, 3}}, {}}},
                          1234,
                          true,
                          {8, 9}};
  return {unit,
          result,
          ShardCommit{kLease, 4, 0, 2, sample_update()},
          CommitCredit{3},
          EvalUnit{UnitId{32}, leases, 5, packed},
          EvalResult{UnitId{32}, 2, {{4, 1.5F}, {2, 1.0F}, {1, -3.0F}, {8, -3.0F}}, 99}};
}

std::vector<Message> input_samples() {
  const QuantizedActivations codes = sample_codes();
  std::vector<std::int32_t> gradient(codes.codes.size());
  gradient[1] = -100;
  const UnitColumns columns{0, 16};
  const auto packed = std::make_shared<const Bytes>(pack_unit_gradient(codes, gradient, columns));
  std::vector<float> activations(codes.codes.size());
  activations[3] = 0.5F;
  return {InputUnit{UnitId{33},
                    {kLease},
                    {{InputStep::Kind::kBackward, 70, codes.examples, 0.25F, {packed}},
                     {InputStep::Kind::kForward, 72, codes.examples, 0, {}},
                     {InputStep::Kind::kScore, 5, 40, 0, {}}}},
          InputResult{UnitId{33},
                      {pack_activations(codes.examples, codes.hidden, columns, activations), {}},
                      77},
          PointsRequest{PointSet::kTestSet, {4, 900}},
          Points{PointSet::kTraining,
                 {4, 900},
                 {0, 2, 2},
                 {7, 300},
                 {0.5F, -1.0F},
                 {{0, 1, 3}, {50, 2, 70}}}};
}

RunStatus sample_status() {
  RunStatus status;
  status.protocol = 5;
  status.build = "0.1.0";
  status.run = "0123456789abcdef";
  status.life = 77;
  status.progress.stage = RunStage::kEvaluating;
  status.progress.round = 3;
  status.progress.rounds = 30;
  status.progress.batch = 213;
  status.progress.batches = 2112;
  status.progress.epoch = 1;
  status.progress.epochs = 6;
  status.progress.staleness = 4;
  status.progress.examples_per_second = 5351.5;
  status.progress.eta_seconds = 41.25;
  status.progress.loss = 4.75;
  status.progress.active = 1472.5;
  status.progress.precision.p[0] = 0.875;
  status.wait_owner = WaitOwner::kVolunteers;
  status.is_held_up = true;
  status.waits_for = "bilbo to load 1 shard";
  status.waits_us = 3'200'000;
  status.store_bytes = 1u << 30;
  status.free_bytes = std::uint64_t{1} << 40;
  status.progress.volunteers = 3;
  status.volunteers = {
      {"bilbo", "10.0.0.2:41234", false, true, 8, 1234.5F, 2100, 400, 2, true, 900, ""},
      {"local-1", "", true, false, 1, 0, -1, 10, 0, false, 0, "others are done sooner"}};
  status.shards = {
      {LeaseState::kLoading, 0, 3'200'000, 3, 213, 32, 26, "atlas", "it is gone: silent for 10 s"},
      {LeaseState::kFree, std::nullopt, 5, 3, 213, 0, 0, "", ""}};
  status.input_shards = 1;
  status.gone = {{"atlas", "silent for 10 s", 3'300'000, 8}};
  return status;
}

}  // namespace

SparseUpdate sample_update() {
  SparseUpdate update;
  update.rows = {0, 70'000};
  update.scales = {0.25F, 9357.0F};
  update.levels = {7, -7, 0, 1, -1, 3};
  update.biases = {0x3c00, 0x7bff};
  update.states = {0.5F, 1e20F};
  return update;
}

std::vector<Message> sample_messages() {
  std::vector<Message> messages = joining_samples();
  for (auto& message : lease_samples()) messages.push_back(std::move(message));
  for (auto& message : training_samples()) messages.push_back(std::move(message));
  messages.push_back(
      Heartbeat{123, 456, RunNews{1, 2, 3, 4, 5, 0.625F, "shard 3 of nobody", "others are sooner"},
                "in use"});
  messages.push_back(Leaving{"the machine is needed"});
  SignedThanks thanks{{{1, 2}, 3, 4, Checked::kAll, true, 5, "birds"}, {}, {}};
  thanks.master.fill(6);
  thanks.signature.fill(7);
  messages.push_back(Goodbye{ErrorCode::kFinished, "The run is complete.", thanks});
  messages.push_back(ShardOffer{14, {{kLease, {15, 16}}, {{ShardId{9}, LeaseEpoch{2}}, {17, 18}}}});
  messages.push_back(Observe{4, 5, "0.1.0", "secret"});
  messages.push_back(sample_status());
  for (auto& message : input_samples()) messages.push_back(std::move(message));
  messages.emplace_back(AccessAnswer{
      5,
      "bilbo is banned",
      {{"mfzwizlt", Role::kAdmin, true, false, "open", 7, 8, "gleaner://h:1/k.i", "mine"}},
      {{"aaaa", "bilbo", "10.0.0.2:4", "mfzwizlt", true, false, true, "wrong sums"}}});
  messages.emplace_back(AccessRequest{4, 5, "0.1.0", "secret", AccessVerb::kBan, "bilbo",
                                      Role::kVolunteer, true, false, 600, "sent wrong sums"});
  messages.emplace_back(RelayHello{4, 5, "0.1.0", "site", "secret"});
  messages.emplace_back(RelayOpen{6, "10.0.0.2:41234", {7, 8}});
  messages.emplace_back(RelayFrame{6, {9, 10, 11}, {12, 13}});
  messages.emplace_back(RelayPart{12, std::make_shared<const Bytes>(Bytes{14, 15})});
  messages.emplace_back(RelayClose{6, "it is gone"});
  messages.emplace_back(RelaySum{16, 17, {{6, UnitId{18}}, {7, UnitId{19}}}, {20, 21}});
  messages.emplace_back(RelaySplit{16});
  return messages;
}

}  // namespace gleaner::testing
