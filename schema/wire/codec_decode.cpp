// Bytes to messages and records. The only place that catches Cap'n Proto's exceptions.
#include <capnp/serialize.h>
#include <kj/exception.h>

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

static_assert(wire::Envelope::ACCESS_REQUEST + 1 == std::variant_size_v<Message>,
              "the envelope's members stand in the order of Message, which names them");

Message read_union(wire::Envelope::Reader envelope) {
  switch (envelope.which()) {
    case wire::Envelope::HELLO:
      return read(envelope.getHello());
    case wire::Envelope::WELCOME:
      return read(envelope.getWelcome());
    case wire::Envelope::REFUSAL:
      return read(envelope.getRefusal());
    case wire::Envelope::LEASE_GRANT:
      return read(envelope.getLeaseGrant());
    case wire::Envelope::CHUNK_REQUEST:
      return read(envelope.getChunkRequest());
    case wire::Envelope::SHARD_CHUNK:
      return read(envelope.getShardChunk());
    case wire::Envelope::SHARD_READY:
      return read(envelope.getShardReady());
    case wire::Envelope::RELEASE_REQUEST:
      return read(envelope.getReleaseRequest());
    case wire::Envelope::HAND_OVER:
      return read(envelope.getHandOver());
    case wire::Envelope::REVOKE:
      return read(envelope.getRevoke());
    case wire::Envelope::TRAIN_UNIT:
      return read(envelope.getTrainUnit());
    case wire::Envelope::UNIT_RESULT:
      return read(envelope.getUnitResult());
    case wire::Envelope::SHARD_COMMIT:
      return read(envelope.getShardCommit());
    case wire::Envelope::COMMIT_CREDIT:
      return read(envelope.getCommitCredit());
    case wire::Envelope::EVAL_UNIT:
      return read(envelope.getEvalUnit());
    case wire::Envelope::EVAL_RESULT:
      return read(envelope.getEvalResult());
    case wire::Envelope::HEARTBEAT:
      return read(envelope.getHeartbeat());
    case wire::Envelope::LEAVING:
      return read(envelope.getLeaving());
    case wire::Envelope::GOODBYE:
      return read(envelope.getGoodbye());
    case wire::Envelope::SHARD_OFFER:
      return read(envelope.getShardOffer());
    case wire::Envelope::OBSERVE:
      return read(envelope.getObserve());
    case wire::Envelope::RUN_STATUS:
      return read(envelope.getRunStatus());
    case wire::Envelope::INPUT_UNIT:
      return read(envelope.getInputUnit());
    case wire::Envelope::INPUT_RESULT:
      return read(envelope.getInputResult());
    case wire::Envelope::POINTS_REQUEST:
      return read(envelope.getPointsRequest());
    case wire::Envelope::POINTS:
      return read(envelope.getPoints());
    case wire::Envelope::ACCESS_REQUEST:
      return read(envelope.getAccessRequest());
    case wire::Envelope::ACCESS_ANSWER:
      return read(envelope.getAccessAnswer());
  }
  malformed("kind", "{} is unknown", static_cast<unsigned>(envelope.which()));
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
