#include "storage/engine/store.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/result.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

// Precedes every operation's key and value.
struct OperationHeader {
  std::uint32_t key_bytes = 0;
  std::uint32_t value_bytes = 0;
  Table table = Table::kRun;
  bool is_put = false;
};

void visit_chunk(const Bytes& chunk, const WriteBatch::Visitor& visitor) {
  const std::uint8_t* at = chunk.data();
  const std::uint8_t* const end = at + chunk.size();
  while (at != end) {
    OperationHeader header;
    std::memcpy(&header, at, sizeof header);
    at += sizeof header;
    const ByteView key{at, header.key_bytes};
    at += header.key_bytes;
    const ByteView value{at, header.value_bytes};
    at += header.value_bytes;
    visitor(header.table, key, header.is_put ? std::optional<ByteView>(value) : std::nullopt);
  }
}

class BatchWriter : public SortedWriter {
 public:
  explicit BatchWriter(Store& store) : store_(store) {}

  Result<void> put(Table table, ByteView key, ByteView value) override {
    batch_.put(table, key, value);
    return {};
  }

  Result<void> erase(Table table, ByteView key) override {
    batch_.erase(table, key);
    return {};
  }

  Result<void> finish() override { return store_.write(std::move(batch_), Durability::kSync); }

 private:
  Store& store_;
  WriteBatch batch_;
};

}  // namespace

void WriteBatch::put(Table table, ByteView key, ByteView value) {
  add(table, key, value);
}

void WriteBatch::erase(Table table, ByteView key) {
  add(table, key, std::nullopt);
}

void WriteBatch::add(Table table, ByteView key, std::optional<ByteView> value) {
  const ByteView content = value.value_or(ByteView{});
  GLEANER_CHECK(key.size() <= UINT32_MAX && content.size() <= UINT32_MAX);
  const OperationHeader header{static_cast<std::uint32_t>(key.size()),
                               static_cast<std::uint32_t>(content.size()), table,
                               value.has_value()};
  const std::size_t needed = sizeof header + key.size() + content.size();
  if (chunks_.empty() || chunks_.back().capacity() - chunks_.back().size() < needed) {
    // Small batches get small chunks, so that a single deletion does not take a megabyte.
    const std::size_t wanted = chunks_.empty() ? std::size_t{4096} : kChunkBytes;
    chunks_.emplace_back().reserve(std::max(needed, wanted));
  }
  Bytes& chunk = chunks_.back();
  std::size_t at = chunk.size();
  chunk.resize(at + needed);
  std::memcpy(chunk.data() + at, &header, sizeof header);
  at += sizeof header;
  if (!key.empty()) std::memcpy(chunk.data() + at, key.data(), key.size());
  at += key.size();
  if (!content.empty()) std::memcpy(chunk.data() + at, content.data(), content.size());
  ++size_;
  bytes_ += key.size() + content.size();
}

void WriteBatch::consume(const Visitor& visitor) {
  while (!chunks_.empty()) {
    visit_chunk(chunks_.front(), visitor);
    chunks_.pop_front();
  }
  size_ = 0;
  bytes_ = 0;
}

Result<std::unique_ptr<SortedWriter>> Store::begin_sorted(std::uint64_t bytes) {
  if (auto room = check_room(bytes); !room) return room.error();
  return std::unique_ptr<SortedWriter>(std::make_unique<BatchWriter>(*this));
}

Result<void> Store::erase_range(Table table, ByteView begin, ByteView end, Durability durability) {
  WriteBatch batch;
  Result<void> scanned = scan(table, begin, end, [&](ByteView key, ByteView) {
    batch.erase(table, key);
    return true;
  });
  if (!scanned || batch.size() == 0) return scanned;
  return write(std::move(batch), durability);
}

Result<void> Store::check_room(std::uint64_t) {
  return {};
}

Result<std::string> Store::snapshot() {
  return Error{ErrorCode::kInvalidArgument, "this kind of store has no snapshots"};
}

Result<std::vector<TableSpace>> Store::space() {
  return std::vector<TableSpace>();
}

std::vector<Error> Store::damaged_files() {
  return {};
}

}  // namespace gleaner
