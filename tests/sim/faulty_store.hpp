// A store that fails on request: a disk's failures, except for lost data.
#pragma once

#include <memory>
#include <utility>

#include "storage/engine/store.hpp"

namespace gleaner::sim {

// Shared by every life of the master.
struct DiskFaults {
  bool next_read_fails = false;
  bool is_looked_at = false;  // the simulation itself reads, which must not use up the fault
  bool has_failed = false;    // a read failed; the observer resets it
};

class FaultyStore : public Store {
 public:
  // `faults` outlives the store.
  FaultyStore(std::unique_ptr<Store> store, DiskFaults& faults)
      : store_(std::move(store)), faults_(faults) {}

  Result<std::optional<Bytes>> get(Table table, ByteView key) override {
    if (fails()) return Error{ErrorCode::kIo, "the disk does not give this back"};
    return store_->get(table, key);
  }

  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override {
    if (fails()) return Error{ErrorCode::kIo, "the disk does not give this back"};
    return store_->scan(table, begin, end, visit);
  }

  Result<void> write(WriteBatch batch, Durability durability) override {
    return store_->write(std::move(batch), durability);
  }

  Result<void> check_room(std::uint64_t bytes) override { return store_->check_room(bytes); }

 private:
  bool fails() {
    if (!faults_.next_read_fails || faults_.is_looked_at) return false;
    faults_.next_read_fails = false;
    faults_.has_failed = true;
    return true;
  }

  std::unique_ptr<Store> store_;
  DiskFaults& faults_;
};

}  // namespace gleaner::sim
