// Messages and records to bytes.
#include "schema/wire/codec.hpp"

#include <capnp/serialize.h>
#include <kj/exception.h>

#include <array>
#include <new>

#include "schema/wire/field_reader.hpp"
#include "schema/wire/field_writer.hpp"
#include "schema/wire/protocol.capnp.h"
#include "schema/wire/records.capnp.h"

namespace gleaner {
namespace {

// The envelope, and fields that only older programs write.
constexpr std::size_t kFixedBytes = 256;
// The bytes before the words: segment count minus one, and size of the only segment, both u32.
constexpr std::size_t kSegmentTableBytes = 8;

// Words of a segment that holds the whole message.
unsigned segment_words(const auto& from) {
  FieldSizer sizer;
  fields(from, sizer);
  return static_cast<unsigned>((kFixedBytes + sizer.bytes) / sizeof(capnp::word));
}

Bytes flatten(capnp::MessageBuilder& builder) {
  const auto segments = builder.getSegmentsForOutput();
  GLEANER_CHECK(segments.size() == 1);
  const auto segment = segments[0].asBytes();
  Bytes bytes(kSegmentTableBytes + segment.size());
  store_le(static_cast<std::uint32_t>(segments[0].size()), &bytes[4]);
  std::memcpy(bytes.data() + kSegmentTableBytes, segment.begin(), segment.size());
  return bytes;
}

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

// Refuses anything but the form that `flatten` writes: one segment that fills `bytes`.
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
  // Allows every word once and some fields twice, which stops pointers to the same bytes again and
  // again.
  options.traversalLimitInWords = words * 2 + 64;
  options.nestingLimit = kNestingMax;
  return options;
}

using Envelope = wire::Envelope::Reader;

template <typename T, auto Get>
Message read_member(Envelope envelope) {
  Message message{std::in_place_type<T>};
  read((envelope.*Get)(), std::get<T>(message));
  return message;
}

#define GLEANER_MESSAGE_READER(type, ...) &read_member<type, &Envelope::get##type>,
// In the order of the envelope's members, which is that of Message.
constexpr std::array kMemberReaders = {GLEANER_MESSAGES(GLEANER_MESSAGE_READER)};
#undef GLEANER_MESSAGE_READER

constexpr const char* kUnnamed = "message";

// Calls `body` with the root of the message in `bytes`. Errors call the message `name`.
template <typename Root, typename Body>
auto read_root(ByteView bytes, ErrorCode code, const char* const& name, const Body& body)
    -> Result<decltype(body(std::declval<typename Root::Reader>()))> {
  try {
    check_table(bytes);
    const Words words(bytes);
    capnp::FlatArrayMessageReader reader(words.get(), reader_options(words.get().size()));
    return body(reader.getRoot<Root>());
  } catch (const Malformed& malformed) {
    return Error{code, fmt::format("{}: {}", name, malformed.what)};
  } catch (const kj::Exception& exception) {
    return Error{code, fmt::format("{}: {}", name, exception.getDescription().cStr())};
  }
}

// The position in Message of the envelope's type.
std::size_t type_in(Envelope envelope) {
  const auto type = static_cast<std::size_t>(envelope.which());
  if (type >= kMemberReaders.size()) malformed("kind", "{} is unknown", type);
  return type;
}

}  // namespace

Bytes encode(const Message& message) {
  capnp::MallocMessageBuilder builder(
      std::visit([](const auto& m) { return segment_words(m); }, message));
  auto envelope = builder.initRoot<wire::Envelope>();
#define GLEANER_MESSAGE_WRITER(type, ...) \
  if (const auto* from = std::get_if<type>(&message)) write(*from, envelope.init##type());
  GLEANER_MESSAGES(GLEANER_MESSAGE_WRITER)
#undef GLEANER_MESSAGE_WRITER
  // The envelope's members stand in the order of Message.
  GLEANER_CHECK(static_cast<std::size_t>(envelope.which()) == message.index());
  return flatten(builder);
}

Bytes encode_update(const SparseUpdate& update) {
  capnp::MallocMessageBuilder builder(segment_words(update));
  FieldWriter<record::Update::Builder> writer{builder.initRoot<record::Update>()};
  fields(update, writer, true);
  return flatten(builder);
}

// Bytes to messages and records. Only this part catches Cap'n Proto's exceptions.

Result<Message> decode(ByteView bytes) {
  const char* name = kUnnamed;
  try {
    return read_root<wire::Envelope>(bytes, ErrorCode::kProtocol, name, [&](Envelope envelope) {
      name = message_name(static_cast<std::size_t>(envelope.which()));
      return kMemberReaders[type_in(envelope)](envelope);
    });
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kResources, "there is no memory for it"};
  }
}

Result<std::size_t> type_of(ByteView bytes) {
  return read_root<wire::Envelope>(bytes, ErrorCode::kProtocol, kUnnamed, type_in);
}

Result<SparseUpdate> decode_update(ByteView bytes) {
  return read_root<record::Update>(bytes, ErrorCode::kCorrupt, "stored update", [](auto from) {
    SparseUpdate update;
    read(from, update);
    return update;
  });
}

}  // namespace gleaner
