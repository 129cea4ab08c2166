// Kinds of damage to the store of a small run, and a store to be damaged.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "storage/engine/memory_store.hpp"
#include "storage/record.hpp"
#include "tests/unit/storage/check_result.hpp"

namespace gleaner::test {

inline constexpr RoundIndex kDamageCheckpoint = 3;

// A sound store at `checkpoint`, made once for each pair.
const MemoryStore& healthy(std::uint64_t seed, RoundIndex checkpoint);

using Entries = std::map<Bytes, Bytes>;

Entries entries(Store& store, Table table);

// A store to be damaged.
class Patient {
 public:
  Patient() : disk_(healthy(1, kDamageCheckpoint).copy()) {}

  [[nodiscard]] MemoryStore& disk() { return *disk_; }

  [[nodiscard]] Bytes record(Table table, const Bytes& key) {
    return require_value(disk_->get(table, key)).value();
  }

  [[nodiscard]] Bytes payload(Table table, const Bytes& key) {
    const Bytes stored = record(table, key);
    const ByteView view = require_value(open_record(table, key, stored));
    return {view.begin(), view.end()};
  }

  void put(Table table, const Bytes& key, const Bytes& value) {
    WriteBatch batch;
    batch.put(table, key, value);
    require_ok(disk_->write(std::move(batch), Durability::kSync));
  }

  // As a program gone wrong would write it: with a checksum that holds.
  void reseal(Table table, const Bytes& key, const Bytes& payload) {
    put(table, key, seal_record(table, key, payload));
  }

  void reseal(Table table, const Bytes& key, const std::string& text) {
    reseal(table, key, Bytes(text.begin(), text.end()));
  }

  void erase(Table table, const Bytes& key) {
    WriteBatch batch;
    batch.erase(table, key);
    require_ok(disk_->write(std::move(batch), Durability::kSync));
  }

 private:
  std::unique_ptr<MemoryStore> disk_;
};

template <typename Key>
Bytes bytes_of(const Key& key) {
  return {key.begin(), key.end()};
}

inline Bytes word(std::string_view text) {
  return {text.begin(), text.end()};
}

// Keys of records that every store of this kind has and that the audit can miss.
struct Places {
  Bytes row;          // of an output shard
  Bytes other_row;    // of the same shard
  Bytes foreign_row;  // of another output shard
  Bytes input_row;
  Bytes staged;       // first of several parts
  Bytes staged_last;  // last of them
  Bytes settled;      // of the same commit
  Bytes history = bytes_of(encode_history_key(2));
  Bytes other_history = bytes_of(encode_history_key(3));
  Bytes account = bytes_of(encode_account_key({0, 1}));
  Bytes epochs = bytes_of(lease_epoch_key());
};

Places places();

struct Kind {
  std::string name;
  std::function<void(Patient&)> damage;
};

std::vector<Kind> all_kinds();

}  // namespace gleaner::test
