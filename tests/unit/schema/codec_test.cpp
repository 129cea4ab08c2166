// Decoding refuses what is malformed, and names the field. Round trips and damage are property
// tests.
#include "schema/wire/codec.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "common/limits.hpp"
#include "common/model/shard_rows.hpp"
#include "common/work/quantized_activations.hpp"
#include "tests/unit/schema/small_messages.hpp"

namespace gleaner {

TEST_CASE("codec: joining messages with impossible content are refused by field", "[codec]") {
  require_accepted(hello());
  Hello bad = hello();
  bad.protocol_min = 2;
  require_refused(bad, "Hello: protocol_min: 2 is above protocol_max 1");
  for (const float speed : {kNan, kInfinity, -1.0F}) {
    bad = hello();
    bad.speed = speed;
    require_refused(bad, "Hello: speed: ");
  }
  require_accepted(welcome());
  Welcome silent = welcome();
  silent.heartbeat_ms = 0;
  require_refused(silent, "Welcome: heartbeat_ms: ");
  silent = welcome();
  silent.silence_ms = silent.heartbeat_ms - 1;
  require_refused(silent, "Welcome: silence_ms: ");
  require_refused(Goodbye{static_cast<ErrorCode>(16), ""}, "Goodbye: code: 16 is unknown");
  SignedThanks thanks;
  thanks.thanks.checked = static_cast<Checked>(3);
  require_refused(Goodbye{ErrorCode::kFinished, "", thanks},
                  "Goodbye: thanks.checked: 3 is unknown");
  require_refused(Refusal{static_cast<ErrorCode>(0), "", false}, "Refusal: code: 0 is unknown");
  require_refused(Heartbeat{1, 2, RunNews{0, 0, 0, 0, 0, kNan, "", ""}},
                  "Heartbeat: news.precision_at_1: ");
}

TEST_CASE("codec: a configuration out of range or not finite is refused", "[codec]") {
  Welcome bad = welcome();
  bad.model.hidden = 17;
  require_refused(bad, "Welcome: model: in the model configuration, hidden is 17");
  bad = welcome();
  bad.model.dropout = kNan;
  require_refused(bad, "Welcome: model: in the model configuration, dropout is nan");
  bad = welcome();
  bad.model.sampling = static_cast<Sampling>(3);
  require_refused(bad, "Welcome: model: the model configuration has no readable 'sampling'");
}

TEST_CASE("codec: text is made printable and cut when it is sent", "[codec]") {
  Hello message = hello();
  message.name = std::string(kNameBytesMax, 'x') + "y";
  message.build = "red \x1b[31m";
  const auto decoded = decode(encode(message));
  REQUIRE(decoded.ok());
  REQUIRE(std::get<Hello>(*decoded).name == std::string(kNameBytesMax, 'x'));
  REQUIRE(std::get<Hello>(*decoded).build == "red ?[31m");
}

TEST_CASE("codec: text that cannot be printed is refused when it arrives", "[codec]") {
  Bytes bytes = encode(Leaving{"shutdown"});
  const std::string text = "shutdown";
  const auto at = std::search(bytes.begin(), bytes.end(), text.begin(), text.end());
  REQUIRE(at != bytes.end());
  *at = 0x1b;
  const auto decoded = decode(bytes);
  REQUIRE_FALSE(decoded.ok());
  REQUIRE(decoded.error().message == "Leaving: reason: not printable UTF-8");
}

TEST_CASE("codec: parts and chunks beyond their number are refused", "[codec]") {
  require_refused(HandOver{kLease, 0, 0, 2, 2, two_rows()}, "HandOver: part: 2 of 2");
  require_refused(HandOver{kLease, 0, 0, 0, 0, two_rows()}, "HandOver: parts: 0");
  require_refused(ShardCommit{kLease, 0, 0, kPartsMax + 1, {}}, "ShardCommit: parts: ");
  require_accepted(ShardCommit{kLease, 0, kPartsMax - 1, kPartsMax, {}});
  require_refused(ChunkRequest{kLease, kPartsMax}, "ChunkRequest: chunk: ");
  require_refused(LeaseGrant{kLease, 0, 0, 3, 2, {}}, "LeaseGrant: base_chunks: 3 of 2 chunks");
  require_refused(LeaseGrant{kLease, 0, 0, 0, kPartsMax + 1, {}}, "LeaseGrant: chunks: ");
  require_refused(LeaseGrant{kLease, 0, 0, 0, 1, {}, true}, "LeaseGrant: is_held: with 1 chunks");
  require_refused(LeaseGrant{kLease, 0, 0, 0, 0, {5}, true}, "LeaseGrant: is_held: with 0 chunks");
  require_refused(ShardOffer{0, {{kLease, {}}, {kLease, {}}}},
                  "ShardOffer: shards: entry 1 is not above the one before");
  require_refused(ShardOffer{0, std::vector<OfferedShard>(kOutputShardsMax + kInputShardsMax + 1)},
                  "ShardOffer: shards: 4353 entries, at most 4352");
  const LeaseRef far{ShardId{kOutputShardsMax + kInputShardsMax}, LeaseEpoch{1}};
  require_refused(Revoke{far}, "Revoke: lease.shard: ");
}

TEST_CASE("codec: rows whose lists disagree are refused", "[codec]") {
  const auto refused = [](const ShardRows& rows, const std::string& field) {
    require_refused(ShardChunk{kLease, 0, rows}, "ShardChunk: " + field);
  };
  require_accepted(ShardChunk{kLease, 0, two_rows()});
  require_accepted(ShardChunk{kLease, 0, {}});
  ShardRows rows = two_rows();
  rows.rows = {2, 2};
  refused(rows, "rows: row 2 after row 2, must ascend");
  rows = two_rows();
  rows.values.push_back(1);
  refused(rows, "values: 5 entries for 2 rows");
  rows = two_rows();
  rows.values[3] = kInfinity;
  refused(rows, "values: entry 3 is inf");
  rows = two_rows();
  rows.values.assign(2 * (kHiddenMax + 2), 0.0F);
  refused(rows, "values: ");
  rows = two_rows();
  rows.states = {1};
  refused(rows, "states: 1 entries for 2 rows");
  rows = two_rows();
  rows.states[1] = -1;
  refused(rows, "states: entry 1 is -1");
  rows = two_rows();
  rows.stale_codes = {1};
  refused(rows, "stale_codes: 1 entries for 2 rows");
  rows = two_rows();
  rows.stale_codes = {1, 2};
  refused(rows, "stale_codes: an entry is neither 0 nor 1");
  ShardRows values_only;
  values_only.values = {1};
  refused(values_only, "values: 1 entries for 0 rows");
}

TEST_CASE("codec: updates whose lists disagree are refused, sent or stored", "[codec]") {
  SparseUpdate good;
  good.rows = {1, 5};
  good.scales = {0.5F, 0.25F};
  good.levels = {1, -2, 3, 0, 5, -7};
  good.biases = {0, 0x3c00};
  good.states = {0.5F, 0.5F};
  require_accepted(ShardCommit{kLease, 0, 0, 1, good});
  REQUIRE(decode_update(encode_update(good)).value() == good);
  const auto refused = [](const SparseUpdate& update, const std::string& field) {
    require_refused(ShardCommit{kLease, 0, 0, 1, update}, "ShardCommit: " + field);
    const auto stored = decode_update(encode_update(update));
    REQUIRE_FALSE(stored.ok());
    REQUIRE(stored.error().code == ErrorCode::kCorrupt);
    REQUIRE(stored.error().message.find("stored update: " + field) == 0);
  };
  SparseUpdate bad = good;
  bad.rows = {5, 1};
  refused(bad, "rows: row 1 after row 5");
  bad = good;
  bad.scales.pop_back();
  refused(bad, "scales: 1 entries for 2 rows");
  bad = good;
  bad.scales[1] = kDeltaMax;
  refused(bad, "scales: entry 1 is 65504");
  bad = good;
  bad.biases.push_back(0);
  refused(bad, "biases: 3 entries for 2 rows, at most 1 a row");
  bad = good;
  bad.biases[1] = 0x7c00;
  refused(bad, "biases: entry 1 is not finite");
  bad = good;
  bad.states[0] = kNan;
  refused(bad, "states: entry 0 is nan");
}

TEST_CASE("codec: units out of order or out of bounds are refused", "[codec]") {
  require_accepted(unit());
  TrainUnit bad = unit();
  bad.leases.clear();
  require_refused(bad, "TrainUnit: leases: 0 entries");
  bad = unit();
  bad.leases.push_back(kLease);
  require_refused(bad, "TrainUnit: leases: entry 1 is not above the one before");
  bad = unit();
  bad.batches[1].batch = 7;
  require_refused(bad, "TrainUnit: batches: batch 7 after batch 5");
  bad = unit();
  bad.batches[0].batch = ~BatchIndex{0};
  bad.batches[1].batch = 0;
  require_refused(bad, "TrainUnit: batches: batch 0 after batch ");
  bad = unit();
  bad.batches.clear();
  require_refused(bad, "TrainUnit: batches: 0 entries");
  bad = unit();
  bad.batches[0].output_rate = kNan;
  require_refused(bad, "TrainUnit: batches.outputRate: nan is not between 0 and 10");
  bad = unit();
  bad.batches[1].output_rate = -0.1F;
  require_refused(bad, "TrainUnit: batches.outputRate: -0.1 is not between 0 and 10");
  bad = unit();
  bad.batches[0].positives.neurons = {kLabelsMax};
  require_refused(bad, "TrainUnit: batches.positives: 100000000 is beyond ");
  const auto hidden = unit().batches[0].hidden;
  require_refused(EvalUnit{UnitId{1}, {kLease}, 0, hidden}, "EvalUnit: top_k: 0");
  require_refused(EvalUnit{UnitId{1}, {kLease}, kTopKMax + 1, hidden}, "EvalUnit: top_k: 101");
}

TEST_CASE("codec: results out of order or not finite are refused", "[codec]") {
  require_accepted(result());
  UnitResult bad = result();
  std::swap(bad.batches[0].shards[0], bad.batches[0].shards[1]);
  require_refused(bad, "UnitResult: batches.shards: shard 1 is out of range or order");
  bad = result();
  bad.batches[0].shards.clear();
  require_refused(bad, "UnitResult: batches.shards: 0 entries");
  bad = result();
  ShardOutcome& outcome = bad.batches[0].shards[0];
  outcome.active = kPairsPerBatchMax;
  outcome.loss = std::numeric_limits<std::int64_t>::max();
  require_accepted(bad);
  outcome.active = 1;
  require_refused(bad, "UnitResult: batches.shards.loss: 9223372036854775807 is out of range");
  outcome.loss = -1;
  require_refused(bad, "UnitResult: batches.shards.loss: -1 is out of range");
  outcome.active = kPairsPerBatchMax + 1;
  require_refused(bad, "UnitResult: batches.shards.active: 409600000001 is out of range");
  require_accepted(scores());
  EvalResult worse = scores();
  std::swap(worse.best[0], worse.best[1]);
  require_refused(worse, "EvalResult: best: entry 1 is out of order");
  worse = scores();
  worse.best.push_back({1, 1.0F});
  require_refused(worse, "EvalResult: best: 3 entries with 2 an example");
  worse = scores();
  worse.top_k = 0;
  require_refused(worse, "EvalResult: best: 2 entries with 0 an example");
  worse = scores();
  worse.best[1].score = kNan;
  require_refused(worse, "EvalResult: best.scores: entry 1 is nan");
}

TEST_CASE("codec: units of input shards that are out of bounds are refused", "[codec]") {
  require_accepted(input_unit());
  const auto refused = [](const std::string& words, auto&& spoil) {
    InputUnit bad = input_unit();
    spoil(bad);
    require_refused(bad, "InputUnit: " + words);
  };
  refused("leases: 0 entries", [](InputUnit& u) { u.leases.clear(); });
  refused("leases: entry 1 is not above", [](InputUnit& u) { u.leases.push_back(kLease); });
  refused("steps: 0 entries, must be 1 to 64", [](InputUnit& u) { u.steps.clear(); });
  refused("steps: 65 entries", [](InputUnit& u) { u.steps.resize(65, u.steps[1]); });
  refused("steps.kind: 3 is unknown",
          [](InputUnit& u) { u.steps[1].kind = static_cast<InputStep::Kind>(3); });
  refused("steps.examples: 0, must be 1 to 4096", [](InputUnit& u) { u.steps[0].examples = 0; });
  refused("steps.examples: 4097", [](InputUnit& u) { u.steps[1].examples = 4097; });
  for (const float rate : {kNan, kInfinity, -0.1F, 10.5F}) {
    refused("steps.rate: ", [&](InputUnit& u) { u.steps[0].rate = rate; });
  }
  refused("steps.gradients: 0 entries, expected 1",
          [](InputUnit& u) { u.steps[0].gradients.clear(); });
  refused("steps.gradients: 2 entries, expected 1",
          [](InputUnit& u) { u.steps[0].gradients.push_back(some_bytes()); });
  refused("steps.gradients: 1 entries, expected 0",
          [](InputUnit& u) { u.steps[1].gradients.push_back(some_bytes()); });
  refused("steps.gradients: 1 entries, expected 0", [](InputUnit& u) {
    u.steps[1].kind = InputStep::Kind::kScore;
    u.steps[1].gradients.push_back(some_bytes());
  });
  InputUnit full = input_unit();
  full.steps.resize(64, full.steps[1]);
  full.steps[63].examples = kBatchExamplesMax;
  full.steps[0].rate = kRateMax;
  require_accepted(full);
}

TEST_CASE("codec: more activations than steps and shards can bring are refused", "[codec]") {
  InputResult result{UnitId{1}, std::vector<Bytes>(std::size_t{64} * 256), 0};
  require_accepted(result);
  result.activations.emplace_back();
  require_refused(result, "InputResult: activations: 16385 entries");
}

TEST_CASE("codec: requests for points that do not ascend or are too many are refused", "[codec]") {
  PointsRequest request{PointSet::kTraining, {4, 9}};
  require_accepted(request);
  request.points = {9, 9};
  require_refused(request, "PointsRequest: points: entry 1 is not above the last");
  request.points = {9, 4};
  require_refused(request, "PointsRequest: points: entry 1 is not above the last");
  request.points = {};
  require_refused(request, "PointsRequest: points: 0 entries, must be 1 to 4096");
  for (std::uint64_t i = 0; i < kPointsPerRequestMax; ++i) request.points.push_back(~i);
  std::reverse(request.points.begin(), request.points.end());
  require_accepted(request);
  request.points.insert(request.points.begin(), 0);
  require_refused(request, "PointsRequest: points: 4097 entries");
  request = {static_cast<PointSet>(2), {4}};
  require_refused(request, "PointsRequest: set: 2 is unknown");
}

TEST_CASE("codec: points whose lists disagree are refused", "[codec]") {
  require_accepted(points());
  const auto refused = [](const std::string& words, auto&& spoil) {
    Points bad = points();
    spoil(bad);
    require_refused(bad, "Points: " + words);
  };
  refused("set: 2 is unknown", [](Points& p) { p.set = static_cast<PointSet>(2); });
  refused("points: entry 1 is not above the last", [](Points& p) { p.points[1] = 4; });
  refused("points: 0 entries", [](Points& p) { p.points.clear(); });
  refused("features: of 2 points, expected 1", [](Points& p) { p.points.pop_back(); });
  refused("features: of 2 points, expected 3", [](Points& p) { p.points.push_back(10); });
  refused("features: 1000000000 is beyond 1000000000",
          [](Points& p) { p.features[1] = kFeaturesMax; });
  refused("values: 1 entries for 2 features", [](Points& p) { p.values.pop_back(); });
  refused("values: 3 entries for 2 features", [](Points& p) { p.values.push_back(0); });
  for (const float value : {kNan, kInfinity, -kInfinity}) {
    refused("values: entry 1 is ", [&](Points& p) { p.values[1] = value; });
  }
  Points good = points();
  good.features[1] = kFeaturesMax - 1;  // of many more than a label can have
  require_accepted(good);
}

TEST_CASE("codec: a status of the largest run there can be is accepted", "[codec]") {
  for (const std::size_t volunteers : {std::size_t{1}, std::size_t{kOutputShardsMax}}) {
    RunStatus status;
    status.volunteers.resize(volunteers);
    status.shards.resize(kOutputShardsMax + kInputShardsMax);
    for (ShardEntry& shard : status.shards) shard.holder = 0;
    status.gone.resize(kDeparturesMax);
    require_accepted(status);
  }
}

TEST_CASE("codec: a status that contradicts itself is refused", "[codec]") {
  RunStatus good;
  good.volunteers.resize(1);
  good.shards.resize(1);
  good.shards[0].holder = 0;
  require_accepted(good);
  RunStatus bad = good;
  bad.shards[0].holder = 1;
  require_refused(bad, "RunStatus: shards.holder: 2 of 1");
  bad = good;
  bad.shards[0].chunks_sent = 1;
  require_refused(bad, "RunStatus: shards.chunks_sent: 1 of 0 chunks");
  bad = good;
  bad.gone.resize(kDeparturesMax + 1);
  require_refused(bad, "RunStatus: gone: 17 entries");
  bad = good;
  bad.wait_owner = static_cast<WaitOwner>(5);
  require_refused(bad, "RunStatus: wait_owner: 5 is unknown");
  bad = good;
  bad.volunteers[0].speed = kNan;
  require_refused(bad, "RunStatus: volunteers.speed: nan");
  require_refused(Observe{2, 1, "", ""}, "Observe: protocol_min: 2 is above protocol_max 1");
}

TEST_CASE("codec: what is no message at all is refused", "[codec]") {
  REQUIRE(decode({}).error().message == "message: size: 0 bytes is no whole message");
  REQUIRE_FALSE(decode(Bytes(8)).ok());
  REQUIRE_FALSE(decode(Bytes(7)).ok());
  Bytes two_segments = encode(hello());
  two_segments[0] = 1;
  REQUIRE(decode(two_segments).error().message.find("message: segments: ") == 0);
  // An envelope that names a kind of message from the future: the tag is its first data word.
  Bytes unknown = encode(hello());
  unknown[16] = std::variant_size_v<Message>;
  REQUIRE(decode(unknown).error().message.find("unknown message: kind: ") == 0);
}

TEST_CASE("codec: messages of many megabytes fit one segment", "[codec]") {
  ShardRows rows;
  for (std::uint32_t i = 0; i < 20'000; ++i) rows.rows.push_back(i);
  rows.values.assign(20'000 * 129, 0.25F);
  rows.states.assign(20'000, 0.5F);
  rows.codes.assign(20'000 * 50, 511);
  const auto decoded = decode(encode(ShardChunk{kLease, 0, rows}));
  REQUIRE(decoded.ok());
  REQUIRE(std::get<ShardChunk>(*decoded).rows == rows);
}

}  // namespace gleaner
