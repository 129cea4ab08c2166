#include "storage/engine/memory_store.hpp"

#include <array>
#include <map>
#include <utility>
#include <vector>

namespace gleaner {
namespace {

using Content = std::array<std::map<Bytes, Bytes>, kTableCount>;

// The value of a key before an unsynced write.
struct Undo {
  std::uint64_t write = 0;  // number of the batch
  Table table = Table::kRun;
  Bytes key;
  std::optional<Bytes> value;
};

Bytes to_bytes(ByteView view) {
  return {view.begin(), view.end()};
}

void set(Content& content, Table table, Bytes key, std::optional<Bytes> value) {
  auto& entries = content[static_cast<std::size_t>(table)];
  if (value.has_value()) {
    entries.insert_or_assign(std::move(key), std::move(*value));
  } else {
    entries.erase(key);
  }
}

}  // namespace

struct MemoryStore::State {
  Content content;
  std::vector<Undo> unsynced;  // oldest first
  std::uint64_t writes = 0;
  std::uint64_t synced = 0;  // batches that survive a power loss
  std::uint64_t fail_at = ~std::uint64_t{0};
  FailedWrite failed_write = FailedWrite::kDropped;
  bool has_failed = false;
  std::uint64_t full_at = ~std::uint64_t{0};

  void apply(WriteBatch& batch, Durability durability) {
    batch.consume([&](Table table, ByteView key_view, std::optional<ByteView> value) {
      Bytes key = to_bytes(key_view);
      if (durability == Durability::kLazy) {
        const auto& entries = content[static_cast<std::size_t>(table)];
        const auto old = entries.find(key);
        unsynced.push_back(
            {writes, table, key,
             old == entries.end() ? std::nullopt : std::optional<Bytes>(old->second)});
      }
      set(content, table, std::move(key),
          value.has_value() ? std::optional<Bytes>(to_bytes(*value)) : std::nullopt);
    });
    ++writes;
    if (durability == Durability::kSync) {
      unsynced.clear();
      synced = writes;
    }
  }

  void allow_writes() {
    fail_at = ~std::uint64_t{0};
    has_failed = false;
  }
};

MemoryStore::MemoryStore() : state_(std::make_shared<State>()) {}

MemoryStore::MemoryStore(std::shared_ptr<State> state) : state_(std::move(state)) {}

std::unique_ptr<MemoryStore> MemoryStore::share() const {
  return std::unique_ptr<MemoryStore>(new MemoryStore(state_));
}

std::unique_ptr<MemoryStore> MemoryStore::copy() const {
  auto other = std::make_unique<MemoryStore>();
  other->state_->content = state_->content;
  return other;
}

Result<std::optional<Bytes>> MemoryStore::get(Table table, ByteView key) {
  const auto& entries = state_->content[static_cast<std::size_t>(table)];
  const auto found = entries.find(to_bytes(key));
  if (found == entries.end()) return std::optional<Bytes>();
  return std::optional<Bytes>(found->second);
}

Result<void> MemoryStore::scan(Table table, ByteView begin, ByteView end,
                               const std::function<bool(ByteView, ByteView)>& visit) {
  const auto& entries = state_->content[static_cast<std::size_t>(table)];
  const Bytes stop = to_bytes(end);
  for (auto entry = entries.lower_bound(to_bytes(begin)); entry != entries.end(); ++entry) {
    if (!stop.empty() && entry->first >= stop) break;
    if (!visit(entry->first, entry->second)) break;
  }
  return {};
}

Result<void> MemoryStore::write(WriteBatch batch, Durability durability) {
  State& state = *state_;
  if (auto room = check_room(batch.bytes()); !room) return room;
  if (state.writes >= state.fail_at || state.has_failed) {
    if (!state.has_failed && state.failed_write == FailedWrite::kApplied) {
      state.apply(batch, durability);
    }
    state.has_failed = true;
    return Error{ErrorCode::kIo, "the write failed: the store must be opened again"};
  }
  state.apply(batch, durability);
  return {};
}

Result<void> MemoryStore::check_room(std::uint64_t) {
  if (state_->writes < state_->full_at) return {};
  return Error{ErrorCode::kDiskFull, "the disk of the store is full"};
}

void MemoryStore::fill_after(std::uint64_t writes) {
  state_->full_at = state_->writes + writes;
}

void MemoryStore::make_room() {
  state_->full_at = ~std::uint64_t{0};
}

void MemoryStore::crash(std::uint64_t survivors) {
  const std::uint64_t kept = state_->synced + survivors;
  for (auto undo = state_->unsynced.rbegin(); undo != state_->unsynced.rend(); ++undo) {
    if (undo->write < kept) break;
    set(state_->content, undo->table, std::move(undo->key), std::move(undo->value));
  }
  state_->unsynced.clear();
  state_->synced = state_->writes;
  state_->allow_writes();
}

void MemoryStore::restart() {
  state_->allow_writes();
}

void MemoryStore::fail_after(std::uint64_t writes, FailedWrite outcome) {
  state_->fail_at = state_->writes + writes;
  state_->failed_write = outcome;
}

std::uint64_t MemoryStore::writes() const {
  return state_->writes;
}

std::uint64_t MemoryStore::unsynced() const {
  return state_->writes - state_->synced;
}

}  // namespace gleaner
