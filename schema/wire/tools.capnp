# Messages between a master and tools: the state of the run, and access. tool_messages.hpp says what
# each field means. Rules of change as in protocol.capnp.
@0xf2dbde26a3283618;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gleaner::wire");

# ---- Asking how the run stands ----

struct Observe {
  protocolMin @0 :UInt32;
  protocolMax @1 :UInt32;
  build @2 :Text;
  invite @3 :Text;
}

struct VolunteerEntry {
  name @0 :Text;
  peer @1 :Text;
  isLocal @2 :Bool;
  isLeaving @3 :Bool;
  cores @4 :UInt32;
  speed @5 :Float32;
  roundTripUs @6 :Int64;
  silentUs @7 :UInt64;
  unitsOut @8 :UInt32;
  owes @9 :Bool;
  owesUs @10 :UInt64;
  noShards @11 :Text;
  hereUs @12 :UInt64;
}

struct ShardEntry {
  state @0 :UInt8;
  holder @1 :UInt32;  # index in `volunteers` plus one; 0 for none
  sinceUs @2 :UInt64;
  committed @3 :UInt32;
  nextBatch @4 :UInt64;
  chunks @5 :UInt32;
  chunksSent @6 :UInt32;
  heldBefore @7 :Text;
  movedWhy @8 :Text;
}

struct DepartureEntry {
  name @0 :Text;
  reason @1 :Text;
  agoUs @2 :UInt64;
  shards @3 :UInt32;
}

struct RunStatus {
  protocol @0 :UInt32;
  build @1 :Text;
  run @2 :Text;
  life @3 :UInt64;
  stage @4 :UInt8;
  round @5 :UInt32;
  rounds @6 :UInt32;
  batch @7 :UInt64;
  batches @8 :UInt64;
  epoch @9 :UInt32;
  epochs @10 :UInt32;
  staleness @11 :UInt32;
  examplesPerSecond @12 :Float32;
  etaSeconds @13 :Float32;
  loss @14 :Float32;
  active @15 :Float32;
  precisionAt1 @16 :Float32;
  waitOwner @17 :UInt8;
  isHeldUp @18 :Bool;
  waitsFor @19 :Text;
  waitsUs @20 :UInt64;
  storeBytes @21 :UInt64;
  freeBytes @22 :UInt64;
  volunteers @23 :List(VolunteerEntry);
  shards @24 :List(ShardEntry);
  gone @25 :List(DepartureEntry);
  volunteersHere @26 :UInt32;
  inputShards @27 :UInt32;
  purpose @28 :Text;
  features @29 :UInt32;
  labels @30 :UInt32;
  hidden @31 :UInt32;
  shardBytes @32 :UInt64;
  holderBytes @33 :UInt64;
  servedUs @34 :UInt64;
  servedBytesDown @35 :UInt64;
  servedBytesUp @36 :UInt64;
  name @37 :Text;
}

# ---- Who may do what ----

struct AccessRequest {
  protocolMin @0 :UInt32;
  protocolMax @1 :UInt32;
  build @2 :Text;
  invite @3 :Text;
  verb @4 :UInt8;
  subject @5 :Text;
  role @6 :UInt8;
  isTrusted @7 :Bool;
  isReusable @8 :Bool;
  expiresS @9 :UInt64;
  label @10 :Text;
}

struct InviteEntry {
  id @0 :Text;
  role @1 :UInt8;
  isTrusted @2 :Bool;
  isReusable @3 :Bool;
  state @4 :Text;
  createdWall @5 :UInt64;
  expiresWall @6 :UInt64;
  address @7 :Text;
  label @8 :Text;
}

struct PeerEntry {
  id @0 :Text;
  name @1 :Text;
  peer @2 :Text;
  invite @3 :Text;
  isHere @4 :Bool;
  isTrusted @5 :Bool;
  isBanned @6 :Bool;
  reason @7 :Text;
}

struct AccessAnswer {
  protocol @0 :UInt32;
  sentence @1 :Text;
  invites @2 :List(InviteEntry);
  peers @3 :List(PeerEntry);
}
