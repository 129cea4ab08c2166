# Messages between master and volunteer. messages.hpp says what each field means and who sends it,
# limits.hpp has the bounds, and README.md in the folder above has the packed forms. Enumerators
# count from 0 in the order of messages.hpp. Rules of change: a field is only added, at the end,
# with a default that means the same as its absence before. Nothing is removed, renumbered or
# retyped within a protocol version.
@0xd2a1f7c05b6e9341;

using Cxx = import "/capnp/c++.capnp";
using Tools = import "tools.capnp";
$Cxx.namespace("gleaner::wire");

struct Envelope {
  union {
    hello @0 :Hello;
    welcome @1 :Welcome;
    refusal @2 :Refusal;
    leaseGrant @3 :LeaseGrant;
    chunkRequest @4 :ChunkRequest;
    shardChunk @5 :ShardChunk;
    shardReady @6 :ShardReady;
    releaseRequest @7 :ReleaseRequest;
    handOver @8 :HandOver;
    revoke @9 :Revoke;
    trainUnit @10 :TrainUnit;
    unitResult @11 :UnitResult;
    shardCommit @12 :ShardCommit;
    commitCredit @13 :CommitCredit;
    evalUnit @14 :EvalUnit;
    evalResult @15 :EvalResult;
    heartbeat @16 :Heartbeat;
    leaving @17 :Leaving;
    goodbye @18 :Goodbye;
    shardOffer @19 :ShardOffer;
    observe @20 :Tools.Observe;
    runStatus @21 :Tools.RunStatus;
    inputUnit @22 :InputUnit;
    inputResult @23 :InputResult;
    pointsRequest @24 :PointsRequest;
    points @25 :Points;
    accessAnswer @26 :Tools.AccessAnswer;
    accessRequest @27 :Tools.AccessRequest;
    relayHello @28 :RelayHello;
    relayOpen @29 :RelayOpen;
    relayFrame @30 :RelayFrame;
    relayPart @31 :RelayPart;
    relayClose @32 :RelayClose;
    relaySum @33 :RelaySum;
    relaySplit @34 :RelaySplit;
  }
}

# ---- Joining ----

struct Hello {
  protocolMin @0 :UInt32;
  protocolMax @1 :UInt32;
  build @2 :Text;
  process @3 :UInt64;  # until protocol 14, with the next field: the volunteer's identity
  unused4 @4 :UInt64;
  name @5 :Text;
  cores @6 :UInt32;
  memoryBytes @7 :UInt64;
  simd @8 :Text;
  speed @9 :Float32;
  invite @10 :Text;
  keptShards @11 :UInt32;
  kernels @12 :List(KernelDigest);  # empty from older volunteers
}

struct KernelDigest {
  kernel @0 :Text;
  digest @1 :UInt64;
}

struct ModelField {
  name @0 :Text;
  value @1 :Text;
}

struct Welcome {
  protocol @0 :UInt32;
  build @1 :Text;
  model @2 :List(ModelField);
  heartbeatMs @3 :UInt32;
  silenceMs @4 :UInt32;
  checkpoint @5 :UInt32;
  testFingerprint @6 :UInt64;
  firstEpoch @7 :UInt64;
  run @8 :Text;
  purpose @9 :Text;
}

struct Refusal {
  code @0 :UInt16;
  sentence @1 :Text;
  retry @2 :Bool;
}

# ---- Leases and shard state ----

struct Lease {
  shard @0 :UInt32;
  epoch @1 :UInt64;
}

# Rows in full precision. Row ids u32, values and states f32, stale codes u8, each little endian.
struct Rows {
  rows @0 :Data;
  values @1 :Data;
  states @2 :Data;
  codes @3 :Data;
  staleCodes @4 :Data;
}

# The changes of a round. Row ids u32, scales and states f32, biases binary16, each little endian;
# levels as in README.md.
struct Update {
  rows @0 :Data;
  unused1 @1 :Data;  # until protocol 2 and store 2: differences in binary16
  states @2 :Data;
  unused3 @3 :Data;  # until protocol 4 and store 3: codes
  scales @4 :Data;
  levels @5 :Data;
  biases @6 :Data;
}

struct LeaseGrant {
  lease @0 :Lease;
  baseRound @1 :UInt32;
  nextBatch @2 :UInt64;
  baseChunks @3 :UInt32;
  chunks @4 :UInt32;
  labelCounts @5 :Data;  # varints
  isHeld @6 :Bool;
}

struct OfferedShard {
  lease @0 :Lease;
  rows @1 :UInt64;
  sum @2 :UInt64;
}

struct ShardOffer {
  checkpoint @0 :UInt32;
  shards @1 :List(OfferedShard);
}

struct ChunkRequest {
  lease @0 :Lease;
  chunk @1 :UInt32;
}

struct ShardChunk {
  lease @0 :Lease;
  chunk @1 :UInt32;
  rows @2 :Rows;
}

struct ShardReady {
  lease @0 :Lease;
}

struct ReleaseRequest {
  lease @0 :Lease;
}

struct HandOver {
  lease @0 :Lease;
  baseRound @1 :UInt32;
  nextBatch @2 :UInt64;
  part @3 :UInt32;
  parts @4 :UInt32;
  rows @5 :Rows;
}

struct Revoke {
  lease @0 :Lease;
}

# ---- Training ----

struct UnitBatch {
  batch @0 :UInt64;
  hidden @1 :Data;
  positives @2 :Data;
  outputRate @3 :Float32;
}

struct TrainUnit {
  unit @0 :UInt64;
  leases @1 :List(Lease);
  batches @2 :List(UnitBatch);
  wantsGradient @3 :Bool;
  mayBeSummed @4 :Bool;
}

struct ShardOutcome {
  shard @0 :UInt32;
  gradientDigest @1 :UInt64;  # XXH3-64 of a checksum of the shard's own gradient
  loss @2 :Int64;
  active @3 :UInt64;
}

struct BatchResult {
  batch @0 :UInt64;
  shards @1 :List(ShardOutcome);
  gradient @2 :Data;
}

struct UnitResult {
  unit @0 :UInt64;
  batches @1 :List(BatchResult);
  computeUs @2 :UInt64;
  isSummed @3 :Bool;
  checks @4 :Data;
}

struct ShardCommit {
  lease @0 :Lease;
  round @1 :UInt32;
  part @2 :UInt32;
  parts @3 :UInt32;
  update @4 :Update;
}

struct CommitCredit {
  parts @0 :UInt32;
}

# ---- Input shards that volunteers hold ----

struct InputStep {
  kind @0 :UInt8;
  index @1 :UInt64;
  examples @2 :UInt32;
  rate @3 :Float32;
  gradients @4 :List(Data);
}

struct InputUnit {
  unit @0 :UInt64;
  leases @1 :List(Lease);
  steps @2 :List(InputStep);
}

struct InputResult {
  unit @0 :UInt64;
  activations @1 :List(Data);
  computeUs @2 :UInt64;
}

# Points u64, little endian.
struct PointsRequest {
  set @0 :UInt8;
  points @1 :Data;
}

# Points u64, values f32, little endian; features as in README.md.
struct Points {
  set @0 :UInt8;
  points @1 :Data;
  features @2 :Data;
  values @3 :Data;
  labels @4 :Data;  # as Positives; empty with a hidden layer
}

# ---- Evaluation ----

struct EvalUnit {
  unit @0 :UInt64;
  leases @1 :List(Lease);
  topK @2 :UInt32;
  hidden @3 :Data;
  first @4 :UInt64;  # place in the evaluation's order, without a hidden layer
}

# Neurons u32 and scores f32, little endian, parallel.
struct EvalResult {
  unit @0 :UInt64;
  topK @1 :UInt32;
  neurons @2 :Data;
  scores @3 :Data;
  computeUs @4 :UInt64;
}

# ---- Keeping in touch ----

struct RunNews {
  round @0 :UInt32;
  rounds @1 :UInt32;
  epoch @2 :UInt32;
  epochs @3 :UInt32;
  volunteers @4 :UInt32;
  precisionAt1 @5 :Float32;
  waitingFor @6 :Text;
  noShards @7 :Text;
}

struct Heartbeat {
  echoUs @0 :UInt64;
  echoedUs @1 :UInt64;
  news @2 :RunNews;  # may be null
  paused @3 :Text;
}

struct Leaving {
  reason @0 :Text;
}

# The signature covers the text of common/access/signed_thanks.hpp, not these bytes.
struct Thanks {
  volunteerHigh @0 :UInt64;
  volunteerLow @1 :UInt64;
  seconds @2 :UInt64;
  examples @3 :UInt64;
  wallSeconds @4 :UInt64;
  checked @5 :UInt8;
  isFinished @6 :Bool;
  run @7 :Text;
  master @8 :Data;
  signature @9 :Data;
}

struct Goodbye {
  code @0 :UInt16;
  sentence @1 :Text;
  thanks @2 :Thanks;  # may be null
}

# ---- Relays ----

struct RelayHello {
  protocolMin @0 :UInt32;
  protocolMax @1 :UInt32;
  build @2 :Text;
  name @3 :Text;
  invite @4 :Text;
}

struct RelayOpen {
  channel @0 :UInt32;
  peer @1 :Text;
  keyHigh @2 :UInt64;
  keyLow @3 :UInt64;
}

# Parts u64, little endian.
struct RelayFrame {
  channel @0 :UInt32;
  payload @1 :Data;
  parts @2 :Data;
}

struct RelayPart {
  number @0 :UInt64;
  bytes @1 :Data;
}

struct RelayClose {
  channel @0 :UInt32;
  reason @1 :Text;
}

# Channels u32 and units u64, little endian, parallel.
struct RelaySum {
  number @0 :UInt64;
  batch @1 :UInt64;
  channels @2 :Data;
  units @3 :Data;
  gradient @4 :Data;
}

struct RelaySplit {
  number @0 :UInt64;
}
