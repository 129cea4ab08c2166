# Records of a store, separate from the messages because they outlive a connection: later versions
# must read the store of an earlier one. Rules of change as in protocol.capnp, for ever.
@0xb87e3f12d94ac065;

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("gleaner::record");

# One part of a staged commit: row ids u32, states and scales f32, biases binary16, each little
# endian; levels as in README.md.
struct Update {
  rows @0 :Data;
  unused1 @1 :Data;  # until protocol 2 and store 2: differences in binary16
  states @2 :Data;
  unused3 @3 :Data;  # until protocol 4 and store 3: codes
  scales @4 :Data;
  levels @5 :Data;
  biases @6 :Data;
}
