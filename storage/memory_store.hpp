// The Store in memory, for simulations: a crash drops what was not synced.
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "storage/store.hpp"

namespace gleaner {

class MemoryStore : public Store {
 public:
  Result<std::optional<Bytes>> get(Table table, ByteView key) override;
  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override;
  Result<void> write(const WriteBatch& batch, Durability durability) override;

  // What a power loss leaves: everything up to the last synced batch.
  void crash();
  // Every write after `writes` more of them fails with kIo; used to crash at each write in turn.
  void fail_after(std::uint64_t writes);

  [[nodiscard]] std::uint64_t writes() const { return writes_; }

 private:
  using Tables = std::array<std::map<Bytes, Bytes>, kTableCount>;
  Tables tables_;
  std::vector<WriteBatch> unsynced_;
  Tables synced_;
  std::uint64_t writes_ = 0;
  std::uint64_t fail_at_ = ~std::uint64_t{0};
};

}  // namespace gleaner
