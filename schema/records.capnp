# What a store keeps. Apart from the messages, because records outlive a connection: a store written
# by one version is read by later ones. Rules of change as in protocol.capnp, for ever.
@0xb87e3f12d94ac065;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gleaner::record");

# One part of a staged commit: row ids u32, deltas binary16, states f32, each little endian; codes
# as README.md describes.
struct Update {
  rows @0 :Data;
  deltas @1 :Data;
  states @2 :Data;
  codes @3 :Data;
}
