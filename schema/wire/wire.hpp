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

void write(const ShardRows& from, wire::Rows::Builder to);
ShardRows read(wire::Rows::Reader from);

// The wire's Update and the store's: two schemas, so that each can change alone.
template <typename Update>
void write_update(const SparseUpdate& from, typename Update::Builder to);
template <typename Update>
SparseUpdate read_update(typename Update::Reader from);

// ---- Each message ------------------------------------------------------------------------------

#define GLEANER_MESSAGE_FORM(type, lane, account)       \
  void write(const type& from, wire::type::Builder to); \
  type read(wire::type::Reader from);
GLEANER_MESSAGES(GLEANER_MESSAGE_FORM)
#undef GLEANER_MESSAGE_FORM

}  // namespace gleaner
