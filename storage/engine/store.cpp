#include "storage/engine/store.hpp"

#include <utility>

namespace gleaner {
namespace {

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
