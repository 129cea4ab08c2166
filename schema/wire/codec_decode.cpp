// Bytes to messages and records. The only place that catches Cap'n Proto's exceptions.
#include <capnp/serialize.h>
#include <kj/exception.h>

#include <array>

#include "schema/wire/codec.hpp"
#include "schema/wire/records.capnp.h"
#include "schema/wire/wire.hpp"

namespace gleaner {
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

// In the order of the envelope's members, which is that of Message.
constexpr std::array kMemberReaders = {
    &read_member<&Envelope::getHello>,         &read_member<&Envelope::getWelcome>,
    &read_member<&Envelope::getRefusal>,       &read_member<&Envelope::getLeaseGrant>,
    &read_member<&Envelope::getChunkRequest>,  &read_member<&Envelope::getShardChunk>,
    &read_member<&Envelope::getShardReady>,    &read_member<&Envelope::getReleaseRequest>,
    &read_member<&Envelope::getHandOver>,      &read_member<&Envelope::getRevoke>,
    &read_member<&Envelope::getTrainUnit>,     &read_member<&Envelope::getUnitResult>,
    &read_member<&Envelope::getShardCommit>,   &read_member<&Envelope::getCommitCredit>,
    &read_member<&Envelope::getEvalUnit>,      &read_member<&Envelope::getEvalResult>,
    &read_member<&Envelope::getHeartbeat>,     &read_member<&Envelope::getLeaving>,
    &read_member<&Envelope::getGoodbye>,       &read_member<&Envelope::getShardOffer>,
    &read_member<&Envelope::getObserve>,       &read_member<&Envelope::getRunStatus>,
    &read_member<&Envelope::getInputUnit>,     &read_member<&Envelope::getInputResult>,
    &read_member<&Envelope::getPointsRequest>, &read_member<&Envelope::getPoints>,
    &read_member<&Envelope::getAccessAnswer>,  &read_member<&Envelope::getAccessRequest>};

static_assert(wire::Envelope::ACCESS_REQUEST + 1 == std::variant_size_v<Message> &&
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
