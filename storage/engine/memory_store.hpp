// The Store in memory, for simulations: a crash drops what was not synced.
#pragma once

#include <cstdint>
#include <memory>

#include "storage/engine/store.hpp"

namespace gleaner {

// A handle on a store that lives as long as any handle on it. Whoever owns the Store that a
// RunStore took keeps another handle, to crash it and to open it again.
class MemoryStore : public Store {
 public:
  // The fate of the first write that fails, which nobody can tell from the error.
  enum class FailedWrite : std::uint8_t { kDropped, kApplied };

  MemoryStore();  // an empty store

  // Another handle on the same store.
  [[nodiscard]] std::unique_ptr<MemoryStore> share() const;
  // A store of its own with the same content, all of it synced.
  [[nodiscard]] std::unique_ptr<MemoryStore> copy() const;

  Result<std::optional<Bytes>> get(Table table, ByteView key) override;
  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override;
  Result<void> write(WriteBatch batch, Durability durability) override;
  Result<void> check_room(std::uint64_t bytes) override;

  // Leaves what a power loss leaves: everything up to the last synced batch, and of the batches
  // after it the first `survivors`, whole: what the disk had taken on its own. Writes work again.
  void crash(std::uint64_t survivors = 0);
  // Leaves what the death of the process leaves: everything written. Writes work again.
  void restart();
  // Every write after `writes` more of them fails with kIo, until the next crash or restart; used
  // to crash at each write in turn.
  void fail_after(std::uint64_t writes, FailedWrite outcome = FailedWrite::kDropped);

  // Every write after `writes` more of them finds the disk full, until make_room().
  void fill_after(std::uint64_t writes);
  void make_room();

  // Batches applied since the store was made.
  [[nodiscard]] std::uint64_t writes() const;
  // Batches a power loss could drop now.
  [[nodiscard]] std::uint64_t unsynced() const;

 private:
  struct State;
  explicit MemoryStore(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace gleaner
