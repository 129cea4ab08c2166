// Conversions between messages and their Cap'n Proto form, one pair a struct, and what they share.
// Private to schema/. Writers expect well-formed messages; readers throw Malformed or
// kj::Exception.
#pragma once

#include <capnp/list.h>
#include <capnp/message.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "common/bytes.hpp"
#include "common/limits.hpp"
#include "schema/compact_lists.hpp"
#include "schema/messages.hpp"
#include "schema/wire/protocol.capnp.h"

namespace gleaner {

// The bytes before the words: segment count minus one and the only segment's size, both u32.
inline constexpr std::size_t kSegmentTableBytes = 8;

// ---- Pieces ------------------------------------------------------------------------------------

inline ByteView view(capnp::Data::Reader data) {
  return {data.begin(), data.size()};
}

// A list's length, or a place in it, as Cap'n Proto counts.
inline unsigned length(std::size_t size) {
  return static_cast<unsigned>(size);
}

inline capnp::Data::Reader data_of(ByteView bytes) {
  return capnp::Data::Reader(bytes.data(), bytes.size());
}

// `text` made printable and cut to `bytes_max`, as the reader insists on.
std::string outgoing_text(std::string_view text, std::size_t bytes_max);
std::string read_text(const char* field, capnp::Text::Reader text, std::size_t bytes_max);

ErrorCode read_error_code(const char* field, std::uint16_t code);

template <typename T>
std::vector<T> read_values(const char* field, capnp::Data::Reader data) {
  if (data.size() % sizeof(T) != 0) {
    malformed(field, "{} bytes is no multiple of {}", data.size(), sizeof(T));
  }
  return values_of<T>(view(data));
}

template <typename Enum>
Enum read_enum(const char* field, std::uint8_t value, Enum last) {
  if (value > static_cast<std::uint8_t>(last)) malformed(field, "{} is unknown", value);
  return static_cast<Enum>(value);
}

// The protocols that whoever introduces itself offers.
template <typename Reader, typename Introduction>
void read_protocols(Reader from, Introduction& to) {
  to.protocol_min = from.getProtocolMin();
  to.protocol_max = from.getProtocolMax();
  if (to.protocol_min > to.protocol_max) {
    malformed("protocol_min", "{} is above protocol_max {}", to.protocol_min, to.protocol_max);
  }
}

// Refuses NaN and infinities.
float read_float(const char* field, float value);
std::vector<float> read_floats(const char* field, capnp::Data::Reader data);

void write(const LeaseRef& from, wire::Lease::Builder to);
LeaseRef read_lease(wire::Lease::Reader from);
void write(const std::vector<LeaseRef>& from, capnp::List<wire::Lease>::Builder to);
// Insists on at least one lease, ascending by shard.
std::vector<LeaseRef> read_leases(capnp::List<wire::Lease>::Reader from);

// ---- Joining, keeping in touch (wire_join.cpp) -------------------------------------------------

void write(const Hello& from, wire::Hello::Builder to);
void write(const Welcome& from, wire::Welcome::Builder to);
void write(const Refusal& from, wire::Refusal::Builder to);
void write(const Heartbeat& from, wire::Heartbeat::Builder to);
void write(const Leaving& from, wire::Leaving::Builder to);
void write(const Goodbye& from, wire::Goodbye::Builder to);
Hello read(wire::Hello::Reader from);
Welcome read(wire::Welcome::Reader from);
Refusal read(wire::Refusal::Reader from);
Heartbeat read(wire::Heartbeat::Reader from);
Leaving read(wire::Leaving::Reader from);
Goodbye read(wire::Goodbye::Reader from);

// ---- Leases and shard state (wire_lease.cpp) ---------------------------------------------------

void write(const LeaseGrant& from, wire::LeaseGrant::Builder to);
void write(const ShardOffer& from, wire::ShardOffer::Builder to);
void write(const ChunkRequest& from, wire::ChunkRequest::Builder to);
void write(const ShardChunk& from, wire::ShardChunk::Builder to);
void write(const ShardReady& from, wire::ShardReady::Builder to);
void write(const ReleaseRequest& from, wire::ReleaseRequest::Builder to);
void write(const HandOver& from, wire::HandOver::Builder to);
void write(const Revoke& from, wire::Revoke::Builder to);
void write(const ShardCommit& from, wire::ShardCommit::Builder to);
void write(const CommitCredit& from, wire::CommitCredit::Builder to);
void write(const ShardRows& from, wire::Rows::Builder to);
LeaseGrant read(wire::LeaseGrant::Reader from);
ShardOffer read(wire::ShardOffer::Reader from);
ChunkRequest read(wire::ChunkRequest::Reader from);
ShardChunk read(wire::ShardChunk::Reader from);
ShardReady read(wire::ShardReady::Reader from);
ReleaseRequest read(wire::ReleaseRequest::Reader from);
HandOver read(wire::HandOver::Reader from);
Revoke read(wire::Revoke::Reader from);
ShardCommit read(wire::ShardCommit::Reader from);
CommitCredit read(wire::CommitCredit::Reader from);
ShardRows read(wire::Rows::Reader from);

// The wire's Update and the store's: two schemas, so that each can change alone.
template <typename Update>
void write_update(const SparseUpdate& from, typename Update::Builder to);
template <typename Update>
SparseUpdate read_update(typename Update::Reader from);

// ---- Training, evaluation (wire_train.cpp) -----------------------------------------------------

void write(const TrainUnit& from, wire::TrainUnit::Builder to);
void write(const UnitResult& from, wire::UnitResult::Builder to);
void write(const EvalUnit& from, wire::EvalUnit::Builder to);
void write(const EvalResult& from, wire::EvalResult::Builder to);
TrainUnit read(wire::TrainUnit::Reader from);
UnitResult read(wire::UnitResult::Reader from);
EvalUnit read(wire::EvalUnit::Reader from);
EvalResult read(wire::EvalResult::Reader from);

// ---- Input shards that volunteers hold (wire_train.cpp) ----------------------------------------

void write(const InputUnit& from, wire::InputUnit::Builder to);
void write(const InputResult& from, wire::InputResult::Builder to);
void write(const PointsRequest& from, wire::PointsRequest::Builder to);
void write(const Points& from, wire::Points::Builder to);
InputUnit read(wire::InputUnit::Reader from);
InputResult read(wire::InputResult::Reader from);
PointsRequest read(wire::PointsRequest::Reader from);
Points read(wire::Points::Reader from);

// ---- How the run stands (wire_tools.cpp) -------------------------------------------------------

void write(const Observe& from, wire::Observe::Builder to);
void write(const RunStatus& from, wire::RunStatus::Builder to);
Observe read(wire::Observe::Reader from);
RunStatus read(wire::RunStatus::Reader from);

// ---- Who may do what (wire_tools.cpp) ----------------------------------------------------------

void write(const AccessRequest& from, wire::AccessRequest::Builder to);
void write(const AccessAnswer& from, wire::AccessAnswer::Builder to);
AccessRequest read(wire::AccessRequest::Reader from);
AccessAnswer read(wire::AccessAnswer::Reader from);

}  // namespace gleaner
