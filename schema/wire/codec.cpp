// Messages and records to bytes.
#include "schema/wire/codec.hpp"

#include <capnp/serialize.h>
#include <kj/exception.h>

#include <array>

#include "schema/wire/records.capnp.h"
#include "schema/wire/wire.hpp"

namespace gleaner {
namespace {

// Fixed parts of any message, its texts included.
constexpr std::size_t kFixedBytes = 4096;

std::size_t bytes_in(const ShardRows& rows) {
  return rows.rows.size() * 4 + rows.values.size() * 4 + rows.states.size() * 4 +
         rows.codes.size() * 4 + rows.stale_codes.size();
}

template <typename T>
std::size_t bytes_in(const T&) {
  return 0;
}

std::size_t bytes_in(const SparseUpdate& update) {
  return update.rows.size() * 12 + update.levels.size() / 2 + update.biases.size() * 2;
}

std::size_t bytes_in(const LeaseGrant& grant) {
  return grant.label_counts.size() * 5;
}

std::size_t bytes_in(const ShardOffer& offer) {
  return offer.shards.size() * 48;
}

std::size_t bytes_in(const RunStatus& status) {
  std::size_t bytes = 0;
  for (const VolunteerEntry& v : status.volunteers) {
    bytes += 128 + v.name.size() + v.peer.size() + v.no_shards.size();
  }
  for (const ShardEntry& s : status.shards) {
    bytes += 96 + s.held_before.size() + s.moved_why.size();
  }
  for (const DepartureEntry& d : status.gone) bytes += 64 + d.name.size() + d.reason.size();
  return bytes;
}

std::size_t bytes_in(const AccessAnswer& answer) {
  std::size_t bytes = 0;
  for (const InviteEntry& i : answer.invites) {
    bytes += 128 + i.id.size() + i.state.size() + i.address.size() + i.label.size();
  }
  for (const PeerEntry& p : answer.peers) {
    bytes += 128 + p.id.size() + p.name.size() + p.peer.size() + p.invite.size() + p.reason.size();
  }
  return bytes;
}

std::size_t bytes_in(const ShardChunk& chunk) {
  return bytes_in(chunk.rows);
}

std::size_t bytes_in(const HandOver& part) {
  return bytes_in(part.rows);
}

std::size_t bytes_in(const ShardCommit& commit) {
  return bytes_in(commit.update);
}

std::size_t bytes_in(const TrainUnit& unit) {
  std::size_t bytes = unit.leases.size() * 16;
  for (const UnitBatch& batch : unit.batches) {
    bytes += 48 + (batch.hidden ? batch.hidden->size() : 0) + batch.positives.offsets.size() * 4 +
             batch.positives.neurons.size() * 5;
  }
  return bytes;
}

std::size_t bytes_in(const UnitResult& result) {
  std::size_t bytes = 0;
  for (const BatchResult& batch : result.batches) {
    bytes += 48 + batch.shards.size() * 32 + batch.gradient.size();
  }
  return bytes;
}

std::size_t bytes_in(const EvalUnit& unit) {
  return unit.leases.size() * 16 + (unit.hidden ? unit.hidden->size() : 0);
}

std::size_t bytes_in(const InputUnit& unit) {
  std::size_t bytes = unit.leases.size() * 16;
  for (const InputStep& step : unit.steps) {
    bytes += 64;
    for (const SharedBytes& gradient : step.gradients) bytes += 16 + gradient->size();
  }
  return bytes;
}

std::size_t bytes_in(const InputResult& result) {
  std::size_t bytes = 0;
  for (const Bytes& part : result.activations) bytes += 16 + part.size();
  return bytes;
}

std::size_t bytes_in(const PointsRequest& request) {
  return request.points.size() * 8;
}

std::size_t bytes_in(const Points& points) {
  return points.points.size() * 13 + points.features.size() * 9;
}

std::size_t bytes_in(const EvalResult& result) {
  return result.best.size() * 8;
}

std::size_t bytes_in(const RelayFrame& frame) {
  return frame.payload.size() + frame.parts.size() * 8;
}

std::size_t bytes_in(const RelayPart& part) {
  return part.bytes->size();
}

std::size_t bytes_in(const RelaySum& sum) {
  return sum.gradient.size() + sum.units.size() * 12;
}

// Words of a segment that the whole message fits.
unsigned segment_words(std::size_t variable_bytes) {
  return static_cast<unsigned>((kFixedBytes + variable_bytes) / sizeof(capnp::word));
}

// Chooses the envelope's member by the message's type.
struct EnvelopeWriter {
  wire::Envelope::Builder to;

#define GLEANER_MESSAGE_WRITER(type, lane, account) \
  void operator()(const type& from) {               \
    write(from, to.init##type());                   \
  }
  GLEANER_MESSAGES(GLEANER_MESSAGE_WRITER)
#undef GLEANER_MESSAGE_WRITER
};

Bytes flatten(capnp::MessageBuilder& builder) {
  const auto segments = builder.getSegmentsForOutput();
  GLEANER_CHECK(segments.size() == 1);
  const auto segment = segments[0].asBytes();
  Bytes bytes(kSegmentTableBytes + segment.size());
  store_le(static_cast<std::uint32_t>(segments[0].size()), &bytes[4]);
  std::memcpy(bytes.data() + kSegmentTableBytes, segment.begin(), segment.size());
  return bytes;
}

}  // namespace

Bytes encode(const Message& message) {
  const std::size_t variable = std::visit([](const auto& m) { return bytes_in(m); }, message);
  capnp::MallocMessageBuilder builder(segment_words(variable));
  std::visit(EnvelopeWriter{builder.initRoot<wire::Envelope>()}, message);
  return flatten(builder);
}

Bytes encode_update(const SparseUpdate& update) {
  capnp::MallocMessageBuilder builder(segment_words(bytes_in(update)));
  write_update<record::Update>(update, builder.initRoot<record::Update>());
  return flatten(builder);
}

// Bytes to messages and records. The only place that catches Cap'n Proto's exceptions.

namespace {

constexpr std::size_t kWordBytes = sizeof(capnp::word);
constexpr int kNestingMax = 8;

// A message's words: in place when `bytes` is aligned, else copied.
class Words {
 public:
  explicit Words(ByteView bytes) {
    if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kWordBytes == 0) {
      words_ = kj::arrayPtr(reinterpret_cast<const capnp::word*>(bytes.data()),
                            bytes.size() / kWordBytes);
      return;
    }
    copy_ = kj::heapArray<capnp::word>(bytes.size() / kWordBytes);
    std::memcpy(copy_.begin(), bytes.data(), bytes.size());
    words_ = copy_;
  }

  [[nodiscard]] kj::ArrayPtr<const capnp::word> get() const { return words_; }

 private:
  kj::Array<capnp::word> copy_;
  kj::ArrayPtr<const capnp::word> words_;
};

// Insists on what `flatten` writes: one segment that fills `bytes`.
void check_table(ByteView bytes) {
  if (bytes.size() > kFrameBytesMax) {
    malformed("size", "{} bytes, at most {}", bytes.size(), kFrameBytesMax);
  }
  if (bytes.size() < kSegmentTableBytes + kWordBytes || bytes.size() % kWordBytes != 0) {
    malformed("size", "{} bytes is no whole message", bytes.size());
  }
  const std::size_t words = bytes.size() / kWordBytes - 1;
  if (load_le<std::uint32_t>(bytes.data()) != 0 || load_le<std::uint32_t>(&bytes[4]) != words) {
    malformed("segments", "not one segment of {} words", words);
  }
}

capnp::ReaderOptions reader_options(std::size_t words) {
  capnp::ReaderOptions options;
  // Every word once, and some fields twice; what points at the same bytes again and again does not
  // get far.
  options.traversalLimitInWords = words * 2 + 64;
  options.nestingLimit = kNestingMax;
  return options;
}

using Envelope = wire::Envelope::Reader;

template <auto Get>
Message read_member(Envelope envelope) {
  return read((envelope.*Get)());
}

#define GLEANER_MESSAGE_READER(type, lane, account) &read_member<&Envelope::get##type>,
// In the order of the envelope's members, which is that of Message.
constexpr std::array kMemberReaders = {GLEANER_MESSAGES(GLEANER_MESSAGE_READER)};
#undef GLEANER_MESSAGE_READER

static_assert(wire::Envelope::RELAY_SPLIT + 1 == std::variant_size_v<Message> &&
                  kMemberReaders.size() == std::variant_size_v<Message>,
              "the envelope's members stand in the order of Message, which names them");

Message read_union(Envelope envelope) {
  const auto kind = static_cast<std::size_t>(envelope.which());
  if (kind >= kMemberReaders.size()) malformed("kind", "{} is unknown", kind);
  return kMemberReaders[kind](envelope);
}

constexpr const char* kUnnamed = "message";

// Runs `body`, which reads something called `name` when it fails.
template <typename T, typename Body>
Result<T> catching(ErrorCode code, const char* const& name, const Body& body) {
  try {
    return body();
  } catch (const Malformed& malformed) {
    return Error{code, fmt::format("{}: {}", name, malformed.what)};
  } catch (const kj::Exception& exception) {
    return Error{code, fmt::format("{}: {}", name, exception.getDescription().cStr())};
  }
}

}  // namespace

Result<Message> decode(ByteView bytes) {
  const char* name = kUnnamed;
  return catching<Message>(ErrorCode::kProtocol, name, [&] {
    check_table(bytes);
    const Words words(bytes);
    capnp::FlatArrayMessageReader reader(words.get(), reader_options(words.get().size()));
    const auto envelope = reader.getRoot<wire::Envelope>();
    name = message_name(static_cast<std::size_t>(envelope.which()));
    return read_union(envelope);
  });
}

Result<std::size_t> type_of(ByteView bytes) {
  const char* const name = kUnnamed;
  return catching<std::size_t>(ErrorCode::kProtocol, name, [&] {
    check_table(bytes);
    const Words words(bytes);
    capnp::FlatArrayMessageReader reader(words.get(), reader_options(words.get().size()));
    const auto type = static_cast<std::size_t>(reader.getRoot<wire::Envelope>().which());
    if (type >= kMemberReaders.size()) malformed("kind", "{} is unknown", type);
    return type;
  });
}

Result<SparseUpdate> decode_update(ByteView bytes) {
  const char* const name = "stored update";
  return catching<SparseUpdate>(ErrorCode::kCorrupt, name, [&] {
    check_table(bytes);
    const Words words(bytes);
    capnp::FlatArrayMessageReader reader(words.get(), reader_options(words.get().size()));
    return read_update<record::Update>(reader.getRoot<record::Update>());
  });
}

}  // namespace gleaner
