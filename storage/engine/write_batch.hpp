// Operations that are written to a store together or not at all. They lie one after the other in
// chunks; what is large goes through Store::begin_sorted instead.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>

#include "common/bytes.hpp"
#include "storage/engine/tables.hpp"

namespace gleaner {

class WriteBatch {
 public:
  // `value` is nullopt for a deletion.
  using Visitor = std::function<void(Table, ByteView key, std::optional<ByteView> value)>;

  void put(Table table, ByteView key, ByteView value);
  void erase(Table table, ByteView key);

  [[nodiscard]] std::size_t size() const { return size_; }

  // The bytes of keys and values.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

  // Calls `visitor` for every operation, in the order in which they were added, and frees what has
  // been visited; leaves the batch empty.
  void consume(const Visitor& visitor);

 private:
  void add(Table table, ByteView key, std::optional<ByteView> value);

  std::deque<Bytes> chunks_;
  std::size_t size_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace gleaner
