// One table of fields for each struct that is sent. Writing, reading with bounds, sizes, and the
// random messages of tests use the table. Private to schema/ and tests.
//
// fields(e, f) calls `f` for each field of the struct `e` in the order of writing, which decides
// where texts and lists stand in the bytes: a new field goes last. FIELD takes the field's name and
// its Cap'n Proto name; NAMED also takes a different name for errors. A bound or a packed form
// (field.hpp) follows: the most bytes of a text, the Range of a number or enumeration (which may
// depend on earlier fields), the Count of a list.
//
// A struct whose fields must agree with each other also has check_fields().
#pragma once

#include <cfloat>
#include <utility>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "schema/messages.hpp"
#include "schema/wire/field.hpp"

namespace gleaner {

// clang-format off
#define NAMED(name, field, Field)                                     \
  name, e.field,                                                      \
  Access{[](const auto& w) { return w.get##Field(); },                \
         [](auto& w, const auto& value) { w.set##Field(value); },     \
         [](auto& w, auto... size) { return w.init##Field(size...); }, \
         [](const auto& w) { return w.has##Field(); }}
// clang-format on
#define FIELD(field, Field) NAMED(#field, field, Field)

// Throws Malformed. Other structs are valid if their fields are.
template <typename T>
void check_fields(const T& /*read*/) {}

void check_fields(const ShardRows& read);
void check_fields(const SparseUpdate& read);
void check_fields(const LeaseGrant& read);
void check_fields(const ShardOffer& read);
void check_fields(const TrainUnit& read);
void check_fields(const ShardOutcome& read);
void check_fields(const BatchResult& read);
void check_fields(const UnitResult& read);
void check_fields(const InputUnit& read);
void check_fields(const PointsRequest& read);
void check_fields(const Points& read);
void check_fields(const EvalUnit& read);
void check_fields(const EvalResult& read);
void check_fields(const RelaySum& read);
void check_fields(const ShardEntry& read);
void check_fields(const RunStatus& read);

template <typename T>
concept IsIntroduction =
    Is<T, Hello> || Is<T, Observe> || Is<T, AccessRequest> || Is<T, RelayHello>;

void check_fields(const IsIntroduction auto& read) {
  if (read.protocol_min <= read.protocol_max) return;
  malformed("protocol_min", "{} is above protocol_max {}", read.protocol_min, read.protocol_max);
}

template <typename T>
concept IsPart = Is<T, HandOver> || Is<T, ShardCommit>;

void check_fields(const IsPart auto& read) {
  if (read.part >= read.parts) malformed("part", "{} of {}", read.part, read.parts);
}

inline constexpr Range kErrorCodes{ErrorCode::kInvalidArgument, ErrorCode::kShuttingDown};
inline constexpr Count kLeaseCount{1, kOutputShardsMax};
inline constexpr Count kBatchCount{1, kBatchesPerUnitMax};
inline constexpr std::uint32_t kShardsMax = kOutputShardsMax + kInputShardsMax;
inline constexpr std::uint32_t kSilenceMsMax = 24 * 3600 * 1000;

// ---- Joining -----------------------------------------------------------------------------------

// The first fields of every introduction.
void introduction(auto& e, auto& f) {
  f(FIELD(protocol_min, ProtocolMin));
  f(FIELD(protocol_max, ProtocolMax));
  f(FIELD(build, Build), kNameBytesMax);
}

void fields(Is<KernelDigest> auto& e, auto& f) {
  f(FIELD(kernel, Kernel), kKernelNameBytesMax);
  f(FIELD(digest, Digest));
}

void fields(Is<Hello> auto& e, auto& f) {
  introduction(e, f);
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(cores, Cores));
  f(FIELD(memory_bytes, MemoryBytes));
  f(FIELD(simd, Simd), kNameBytesMax);
  f(FIELD(speed, Speed), Range{0.0F, FLT_MAX});
  f(FIELD(invite, Invite), kInviteBytesMax);
  f(FIELD(kept_shards, KeptShards));
  f(FIELD(process, Process));
  f(FIELD(kernels, Kernels), Count{0, kKernelDigestsMax, true});
}

// A model is sent as the names and values of its fields.
using ModelText = std::pair<std::string, std::string>;
ModelConfig read_model(const char* field, const std::vector<ModelText>& texts);
// More than any model has, and longer than any name or value.
inline constexpr Count kModelTextCount{0, 256};
inline constexpr std::size_t kModelTextBytesMax = 64;

void fields(Is<ModelText> auto& e, auto& f) {
  f(NAMED("name", first, Name), kModelTextBytesMax);
  f(NAMED("value", second, Value), kModelTextBytesMax);
}

void fields(Is<Welcome> auto& e, auto& f) {
  f(FIELD(protocol, Protocol));
  f(FIELD(build, Build), kNameBytesMax);
  f(FIELD(model, Model));
  // Prevents a peer that sends heartbeats without pause, or is dead as soon as it is silent.
  f(FIELD(heartbeat_ms, HeartbeatMs), Range{1u, kSilenceMsMax});
  f(FIELD(silence_ms, SilenceMs), Range{e.heartbeat_ms, kSilenceMsMax});
  f(FIELD(checkpoint, Checkpoint));
  f(FIELD(test_fingerprint, TestFingerprint));
  f(FIELD(first_epoch, FirstEpoch));
  f(FIELD(run, Run), kNameBytesMax);
  f(FIELD(purpose, Purpose), kPurposeBytesMax);
}

void fields(Is<Refusal> auto& e, auto& f) {
  f(FIELD(code, Code), kErrorCodes);
  f(FIELD(sentence, Sentence), kSentenceBytesMax);
  f(FIELD(retry, Retry));
}

// ---- Leases and shard state --------------------------------------------------------------------

void fields(Is<LeaseRef> auto& e, auto& f) {
  f(FIELD(shard, Shard), up_to(ShardId{kShardsMax - 1}));
  f(FIELD(epoch, Epoch));
}

void fields(Is<ShardRows> auto& e, auto& f) {
  f(FIELD(rows, Rows));
  f(FIELD(values, Values));
  f(FIELD(states, States));
  const std::size_t rows = e.rows.size();
  f(FIELD(codes, Codes),
    Packed{3 + e.codes.size() * 4, [=](const auto& codes) { return pack_codes(codes, rows); },
           [=](auto... packed) { return unpack_codes(packed..., rows); }});
  f(FIELD(stale_codes, StaleCodes));
}

void fields(Is<SparseUpdate> auto& e, auto& f, bool is_stored = false) {
  f(FIELD(rows, Rows));
  f(FIELD(scales, Scales));
  const std::size_t rows = e.rows.size();
  // A store compresses in its own way, and its records must stay readable.
  const auto pack = is_stored ? pack_levels : pack_levels_small;
  f(FIELD(levels, Levels),
    Packed{3 + e.levels.size() / 2, [=](const auto& levels) { return pack(levels, rows); },
           [=](auto... packed) { return unpack_levels(packed..., rows); }});
  f(FIELD(biases, Biases));
  f(FIELD(states, States));
}

void fields(Is<LeaseGrant> auto& e, auto& f) {
  f(FIELD(lease, Lease));
  f(FIELD(base_round, BaseRound));
  f(FIELD(next_batch, NextBatch));
  f(FIELD(base_chunks, BaseChunks));
  f(FIELD(chunks, Chunks), Range{0u, kPartsMax});
  f(FIELD(label_counts, LabelCounts),
    Packed{e.label_counts.size() * 5, pack_counts,
           [](auto... packed) { return unpack_counts(packed..., kLabelsMax); }});
  f(FIELD(is_held, IsHeld));
}

template <typename T>
concept IsOnlyLease = Is<T, ShardReady> || Is<T, ReleaseRequest> || Is<T, Revoke>;

void fields(IsOnlyLease auto& e, auto& f) {
  f(FIELD(lease, Lease));
}

void fields(Is<ChunkRequest> auto& e, auto& f) {
  f(FIELD(lease, Lease));
  f(FIELD(chunk, Chunk), Range{0u, kPartsMax - 1});
}

void fields(Is<ShardChunk> auto& e, auto& f) {
  f(FIELD(lease, Lease));
  f(FIELD(chunk, Chunk), Range{0u, kPartsMax - 1});
  f(NAMED("", rows, Rows));
}

void fields(Is<HandOver> auto& e, auto& f) {
  f(FIELD(lease, Lease));
  f(FIELD(base_round, BaseRound));
  f(FIELD(next_batch, NextBatch));
  f(FIELD(part, Part));
  f(FIELD(parts, Parts), Range{1u, kPartsMax});
  f(NAMED("", rows, Rows));
}

void fields(Is<OfferedShard> auto& e, auto& f) {
  f(FIELD(lease, Lease));
  f(FIELD(digest.rows, Rows));
  f(FIELD(digest.sum, Sum));
}

void fields(Is<ShardOffer> auto& e, auto& f) {
  f(FIELD(checkpoint, Checkpoint));
  f(FIELD(shards, Shards), Count{0, kShardsMax});
}

// ---- Training ----------------------------------------------------------------------------------

inline auto packed_positives(const Positives& positives) {
  return Packed{(positives.offsets.size() + positives.neurons.size()) * 5, pack_positives,
                [](auto... packed) { return unpack_positives(packed...); }};
}

void fields(Is<UnitBatch> auto& e, auto& f) {
  f(FIELD(batch, Batch));
  f(FIELD(hidden, Hidden));
  f(FIELD(positives, Positives), packed_positives(e.positives));
  f(NAMED("outputRate", output_rate, OutputRate), Range{0.0F, kRateMax});
}

void fields(Is<TrainUnit> auto& e, auto& f) {
  f(FIELD(unit, Unit));
  f(FIELD(leases, Leases), kLeaseCount);
  f(FIELD(batches, Batches), kBatchCount);
  f(FIELD(wants_gradient, WantsGradient));
  f(FIELD(may_be_summed, MayBeSummed));
}

void fields(Is<ShardOutcome> auto& e, auto& f) {
  f(FIELD(shard, Shard));
  f(FIELD(gradient_digest, GradientDigest));
  f(FIELD(loss, Loss));
  f(FIELD(active, Active));
}

void fields(Is<BatchResult> auto& e, auto& f) {
  f(FIELD(batch, Batch));
  f(FIELD(shards, Shards), kLeaseCount);
  f(FIELD(gradient, Gradient));
}

void fields(Is<UnitResult> auto& e, auto& f) {
  f(FIELD(unit, Unit));
  f(FIELD(batches, Batches), kBatchCount);
  f(FIELD(compute_us, ComputeUs));
  f(FIELD(is_summed, IsSummed));
  f(FIELD(checks, Checks));
}

void fields(Is<ShardCommit> auto& e, auto& f) {
  f(FIELD(lease, Lease));
  f(FIELD(round, Round));
  f(FIELD(part, Part));
  f(FIELD(parts, Parts), Range{1u, kPartsMax});
  f(NAMED("", update, Update));
}

void fields(Is<CommitCredit> auto& e, auto& f) {
  f(FIELD(parts, Parts), Range{1u, ~0u});
}

// ---- Input shards that volunteers hold ---------------------------------------------------------

void fields(Is<InputStep> auto& e, auto& f) {
  f(FIELD(kind, Kind), up_to(InputStep::Kind::kScore));
  f(FIELD(index, Index));
  f(FIELD(examples, Examples), Range{1u, kBatchExamplesMax});
  f(FIELD(rate, Rate), Range{0.0F, kRateMax});
  f(FIELD(gradients, Gradients), Count{0, kOutputShardsMax});
}

void fields(Is<InputUnit> auto& e, auto& f) {
  f(FIELD(unit, Unit));
  f(FIELD(leases, Leases), kLeaseCount);
  f(FIELD(steps, Steps), Count{1, kStepsPerUnitMax});
}

void fields(Is<InputResult> auto& e, auto& f) {
  f(FIELD(unit, Unit));
  f(FIELD(activations, Activations), Count{0, std::size_t{kStepsPerUnitMax} * kInputShardsMax});
  f(FIELD(compute_us, ComputeUs));
}

void fields(Is<PointsRequest> auto& e, auto& f) {
  f(FIELD(set, Set), up_to(PointSet::kTestSet));
  f(FIELD(points, Points), Count{1, kPointsPerRequestMax});
}

void fields(Is<Points> auto& e, auto& f) {
  f(FIELD(set, Set), up_to(PointSet::kTestSet));
  f(FIELD(points, Points), Count{1, kPointsPerRequestMax});
  const auto pack = [&](const auto& features) { return pack_positives({e.offsets, features}); };
  const auto unpack = [&](auto... packed) {
    auto features = unpack_positives(packed..., kFeaturesMax);
    e.offsets = std::move(features.offsets);
    return std::move(features.neurons);
  };
  f(FIELD(features, Features), Packed{(e.offsets.size() + e.features.size()) * 5, pack, unpack});
  f(FIELD(values, Values));
  f(FIELD(labels, Labels), packed_positives(e.labels));
}

// ---- Evaluation --------------------------------------------------------------------------------

void fields(Is<EvalUnit> auto& e, auto& f) {
  f(FIELD(unit, Unit));
  f(FIELD(leases, Leases), kLeaseCount);
  f(FIELD(top_k, TopK), Range{1u, kTopKMax});
  f(FIELD(hidden, Hidden));
  f(FIELD(first, First));
}

void fields(Is<EvalResult> auto& e, auto& f) {
  f(FIELD(unit, Unit));
  f(FIELD(top_k, TopK), Range{0u, kTopKMax});
  f(NAMED("best.neurons", best, Neurons), column(e.best, &ScoredNeuron::neuron));
  f(NAMED("best.scores", best, Scores), column(e.best, &ScoredNeuron::score, "neurons"));
  f(FIELD(compute_us, ComputeUs));
}

// ---- Keeping in touch --------------------------------------------------------------------------

void fields(Is<RunNews> auto& e, auto& f) {
  f(FIELD(round, Round));
  f(FIELD(rounds, Rounds));
  f(FIELD(epoch, Epoch));
  f(FIELD(epochs, Epochs));
  f(FIELD(volunteers, Volunteers));
  f(FIELD(precision_at_1, PrecisionAt1));
  f(FIELD(waiting_for, WaitingFor), kSentenceBytesMax);
  f(FIELD(no_shards, NoShards), kSentenceBytesMax);
}

void fields(Is<Heartbeat> auto& e, auto& f) {
  f(FIELD(paused, Paused), kSentenceBytesMax);
  f(FIELD(echo_us, EchoUs));
  f(FIELD(echoed_us, EchoedUs));
  f(FIELD(news, News));
}

void fields(Is<Leaving> auto& e, auto& f) {
  f(FIELD(reason, Reason), kSentenceBytesMax);
}

void fields(Is<SignedThanks> auto& e, auto& f) {
  f(FIELD(thanks.volunteer.high, VolunteerHigh));
  f(FIELD(thanks.volunteer.low, VolunteerLow));
  f(FIELD(thanks.seconds, Seconds));
  f(FIELD(thanks.examples, Examples));
  f(FIELD(thanks.wall_seconds, WallSeconds));
  f(NAMED("checked", thanks.checked, Checked), up_to(Checked::kAll));
  f(FIELD(thanks.is_finished, IsFinished));
  f(NAMED("run", thanks.run, Run), kNameBytesMax);
  f(FIELD(master, Master));
  f(FIELD(signature, Signature));
}

void fields(Is<Goodbye> auto& e, auto& f) {
  f(FIELD(code, Code), kErrorCodes);
  f(FIELD(sentence, Sentence), kSentenceBytesMax);
  f(FIELD(thanks, Thanks));
}

// ---- Relays ------------------------------------------------------------------------------------

void fields(Is<RelayHello> auto& e, auto& f) {
  introduction(e, f);
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(invite, Invite), kInviteBytesMax);
}

void fields(Is<RelayOpen> auto& e, auto& f) {
  f(FIELD(channel, Channel));
  f(FIELD(peer, Peer), kNameBytesMax);
  f(FIELD(key.high, KeyHigh));
  f(FIELD(key.low, KeyLow));
}

void fields(Is<RelayFrame> auto& e, auto& f) {
  f(FIELD(channel, Channel));
  f(FIELD(payload, Payload));
  f(FIELD(parts, Parts), Count{0, kBatchesPerUnitMax});
}

void fields(Is<RelayPart> auto& e, auto& f) {
  f(FIELD(number, Number));
  f(FIELD(bytes, Bytes));
}

void fields(Is<RelayClose> auto& e, auto& f) {
  f(FIELD(channel, Channel));
  f(FIELD(reason, Reason), kSentenceBytesMax);
}

void fields(Is<RelaySum> auto& e, auto& f) {
  f(FIELD(number, Number));
  f(FIELD(batch, Batch));
  f(NAMED("channels", units, Channels), column(e.units, &RelayedUnit::channel));
  f(NAMED("units", units, Units), column(e.units, &RelayedUnit::unit, "channels"));
  f(FIELD(gradient, Gradient));
}

void fields(Is<RelaySplit> auto& e, auto& f) {
  f(FIELD(number, Number));
}

// ---- Tools -------------------------------------------------------------------------------------

void fields(Is<Observe> auto& e, auto& f) {
  introduction(e, f);
  f(FIELD(invite, Invite), kInviteBytesMax);
}

void fields(Is<VolunteerEntry> auto& e, auto& f) {
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(peer, Peer), kNameBytesMax);
  f(FIELD(is_local, IsLocal));
  f(FIELD(is_leaving, IsLeaving));
  f(FIELD(cores, Cores));
  f(FIELD(speed, Speed));
  f(FIELD(round_trip_us, RoundTripUs));
  f(FIELD(silent_us, SilentUs));
  f(FIELD(units_out, UnitsOut));
  f(FIELD(owes, Owes));
  f(FIELD(owes_us, OwesUs));
  f(FIELD(no_shards, NoShards), kSentenceBytesMax);
  f(FIELD(here_us, HereUs));
}

void fields(Is<ShardEntry> auto& e, auto& f) {
  f(FIELD(state, State), up_to(LeaseState::kReleasing));
  f(FIELD(holder, Holder));
  f(FIELD(since_us, SinceUs));
  f(FIELD(committed, Committed));
  f(FIELD(next_batch, NextBatch));
  f(FIELD(chunks, Chunks), Range{0u, kPartsMax * 2});
  f(FIELD(chunks_sent, ChunksSent));
  f(FIELD(held_before, HeldBefore), kNameBytesMax);
  f(FIELD(moved_why, MovedWhy), kSentenceBytesMax);
}

void fields(Is<DepartureEntry> auto& e, auto& f) {
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(reason, Reason), kSentenceBytesMax);
  f(FIELD(ago_us, AgoUs));
  f(FIELD(shards, Shards));
}

void fields(Is<RunStatus> auto& e, auto& f) {
  f(FIELD(protocol, Protocol));
  f(FIELD(build, Build), kNameBytesMax);
  f(FIELD(run, Run), kNameBytesMax);
  f(FIELD(life, Life));
  f(NAMED("stage", progress.stage, Stage), up_to(RunStage::kDone));
  f(FIELD(progress.round, Round));
  f(FIELD(progress.rounds, Rounds));
  f(FIELD(progress.batch, Batch));
  f(FIELD(progress.batches, Batches));
  f(FIELD(progress.epoch, Epoch));
  f(FIELD(progress.epochs, Epochs));
  f(FIELD(progress.staleness, Staleness));
  f(NAMED("examples_per_second", progress.examples_per_second, ExamplesPerSecond));
  f(NAMED("eta_seconds", progress.eta_seconds, EtaSeconds));
  f(NAMED("loss", progress.loss, Loss));
  f(NAMED("active", progress.active, Active));
  f(NAMED("precision_at_1", progress.precision.p[0], PrecisionAt1));
  f(FIELD(progress.volunteers, VolunteersHere));
  f(FIELD(wait_owner, WaitOwner), up_to(WaitOwner::kStore));
  f(FIELD(is_held_up, IsHeldUp));
  f(FIELD(waits_for, WaitsFor), kSentenceBytesMax);
  f(FIELD(waits_us, WaitsUs));
  f(FIELD(store_bytes, StoreBytes));
  f(FIELD(free_bytes, FreeBytes));
  f(FIELD(volunteers, Volunteers), Count{0, kOutputShardsMax});
  f(FIELD(shards, Shards), Count{0, kShardsMax});
  f(FIELD(input_shards, InputShards), Range{std::size_t{0}, e.shards.size()});
  f(FIELD(gone, Gone), Count{0, kDeparturesMax});
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(purpose, Purpose), kPurposeBytesMax);
  f(FIELD(features, Features));
  f(FIELD(labels, Labels));
  f(FIELD(hidden, Hidden));
  f(FIELD(shard_bytes, ShardBytes));
  f(FIELD(holder_bytes, HolderBytes));
  f(FIELD(served_us, ServedUs));
  f(FIELD(served_bytes_down, ServedBytesDown));
  f(FIELD(served_bytes_up, ServedBytesUp));
}

void fields(Is<AccessRequest> auto& e, auto& f) {
  introduction(e, f);
  f(FIELD(invite, Invite), kInviteBytesMax);
  f(FIELD(verb, Verb), up_to(AccessVerb::kUnban));
  f(FIELD(subject, Subject), kNameBytesMax);
  f(FIELD(role, Role), up_to(Role::kAdmin));
  f(FIELD(is_trusted, IsTrusted));
  f(FIELD(is_reusable, IsReusable));
  f(FIELD(expires_s, ExpiresS));
  f(FIELD(label, Label), kNameBytesMax);
}

void fields(Is<InviteEntry> auto& e, auto& f) {
  f(FIELD(id, Id), kNameBytesMax);
  f(FIELD(role, Role), up_to(Role::kAdmin));
  f(FIELD(is_trusted, IsTrusted));
  f(FIELD(is_reusable, IsReusable));
  f(FIELD(state, State), kNameBytesMax);
  f(FIELD(created_wall, CreatedWall));
  f(FIELD(expires_wall, ExpiresWall));
  f(FIELD(address, Address), kSentenceBytesMax);
  f(FIELD(label, Label), kNameBytesMax);
}

void fields(Is<PeerEntry> auto& e, auto& f) {
  f(FIELD(id, Id), kNameBytesMax);
  f(FIELD(name, Name), kNameBytesMax);
  f(FIELD(peer, Peer), kNameBytesMax);
  f(FIELD(invite, Invite), kNameBytesMax);
  f(FIELD(is_here, IsHere));
  f(FIELD(is_trusted, IsTrusted));
  f(FIELD(is_banned, IsBanned));
  f(FIELD(reason, Reason), kNameBytesMax);
}

void fields(Is<AccessAnswer> auto& e, auto& f) {
  f(FIELD(protocol, Protocol));
  f(FIELD(sentence, Sentence), kSentenceBytesMax);
  f(FIELD(invites, Invites), Count{0, kInvitesMax});
  f(FIELD(peers, Peers), Count{0, kPeersMax});
}

#undef FIELD
#undef NAMED

}  // namespace gleaner
