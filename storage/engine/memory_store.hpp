// The Store in memory, for simulations: a crash drops unsynced writes.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/engine/store.hpp"

namespace gleaner {

// A handle on a store that lives as long as any handle on it. A test keeps a second handle on a
// RunStore's store, to crash it and to open it again.
class MemoryStore : public Store {
 public:
  // Whether the first failing write takes effect; a real error does not say so either.
  enum class FailedWrite : std::uint8_t { kDropped, kApplied };

  MemoryStore();  // an empty store

  // Another handle on the same store.
  [[nodiscard]] std::unique_ptr<MemoryStore> share() const;
  // A separate store with the same content, all of it synced.
  [[nodiscard]] std::unique_ptr<MemoryStore> copy() const;

  Result<std::optional<Bytes>> get(Table table, ByteView key) override;
  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override;
  Result<void> write(WriteBatch batch, Durability durability) override;
  Result<void> check_room(std::uint64_t bytes) override;

  // Simulates a power loss: keeps everything up to the last synced batch, and the first `survivors`
  // later batches (the disk may have written some of them). Writes work again.
  void crash(std::uint64_t survivors = 0);
  // Simulates the death of the process: keeps everything written. Writes work again.
  void restart();
  // After `writes` more writes, every write fails with kIo until the next crash or restart. Tests
  // use it to crash at each write in turn.
  void fail_after(std::uint64_t writes, FailedWrite outcome = FailedWrite::kDropped);

  // After `writes` more writes, every write finds the disk full until make_room().
  void fill_after(std::uint64_t writes);
  void make_room();

  // Number of batches applied since the store was made.
  [[nodiscard]] std::uint64_t writes() const;
  // Number of batches that a power loss could drop now.
  [[nodiscard]] std::uint64_t unsynced() const;

 private:
  struct State;
  explicit MemoryStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace gleaner
