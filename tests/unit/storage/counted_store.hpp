// A store that counts the records of the history that are read from it.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "storage/engine/store.hpp"

namespace gleaner::test {

class CountedStore : public Store {
 public:
  // `reads` outlives the store.
  CountedStore(std::unique_ptr<Store> store, std::size_t& reads)
      : store_(std::move(store)), reads_(reads) {}

  Result<std::optional<Bytes>> get(Table table, ByteView key) override {
    if (table == Table::kHistory) ++reads_;
    return store_->get(table, key);
  }

  Result<void> scan(Table table, ByteView begin, ByteView end,
                    const std::function<bool(ByteView, ByteView)>& visit) override {
    return store_->scan(table, begin, end, [&](ByteView key, ByteView value) {
      if (table == Table::kHistory) ++reads_;
      return visit(key, value);
    });
  }

  Result<void> write(WriteBatch batch, Durability durability) override {
    return store_->write(std::move(batch), durability);
  }

 private:
  std::unique_ptr<Store> store_;
  std::size_t& reads_;
};

}  // namespace gleaner::test
