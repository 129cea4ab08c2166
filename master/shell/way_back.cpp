#include "master/shell/way_back.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "master/door/access_file.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/kept_checkpoints.hpp"

namespace gleaner {
namespace {

constexpr std::string_view kPrefix = "audit-";

std::string name_of(RoundIndex checkpoint) {
  return fmt::format("{}{}", kPrefix, checkpoint);
}

// Ascending.
std::vector<RoundIndex> kept_checkpoints(const std::string& store) {
  std::vector<RoundIndex> kept;
  for (const std::string& name : kept_names(store)) {
    if (!name.starts_with(kPrefix)) continue;
    const char* const end = name.data() + name.size();
    RoundIndex checkpoint = 0;
    const auto read = std::from_chars(name.data() + kPrefix.size(), end, checkpoint);
    if (read.ec == std::errc() && read.ptr == end) kept.push_back(checkpoint);
  }
  std::ranges::sort(kept);
  return kept;
}

// Goes back to the last kept checkpoint up to `round`; kNotFound when none is kept.
Result<RoundIndex> go_back(const std::string& store, RunStore& run, RoundIndex round) {
  std::vector<RoundIndex> checkpoints = kept_checkpoints(store);
  std::ranges::reverse(checkpoints);
  for (const RoundIndex checkpoint : checkpoints) {
    if (checkpoint > round) continue;
    // A checkpoint that was kept just before a power cut may be damaged. An earlier one serves as
    // well.
    auto folder = open_rocks_store(kept_path(store, name_of(checkpoint)), OpenMode::kReadOnly);
    if (!folder) continue;
    const auto kept = RunStore::open(std::move(*folder));
    if (!kept || (*kept)->checkpoint() > round) continue;
    const RoundIndex target = (*kept)->checkpoint();
    if (auto gone = run.go_back(**kept); !gone) return gone.error();
    return target;
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("no checkpoint up to {} is kept beside {}", round, store)};
}

}  // namespace

Result<std::optional<RoundIndex>> first_unaudited(RunStore& run, const std::vector<KeyId>& keys) {
  if (keys.empty()) return std::optional<RoundIndex>();
  for (RoundIndex round = 0; round < run.checkpoint(); ++round) {
    const Result<Receipts> receipts = run.receipts(round);
    if (!receipts) return receipts.error();
    const bool took_part = std::ranges::any_of(receipts->unaudited, [&](const KeyId& key) {
      return std::ranges::find(keys, key) != keys.end();
    });
    if (took_part) return std::optional(round);
  }
  return std::optional<RoundIndex>();
}

bool has_kept_to_go_back(const std::string& store) {
  return !kept_checkpoints(store).empty();
}

Result<void> keep_to_go_back(const HeldFolder& folder, RoundIndex now) {
  if (auto in_place = folder.check(); !in_place) return in_place;
  const std::string& store = folder.path();
  for (const RoundIndex checkpoint : kept_checkpoints(store)) {
    // A checkpoint from before the run went back is of no use.
    if (checkpoint < now && is_kept_to_go_back(checkpoint, now)) continue;
    if (auto dropped = drop_kept(store, name_of(checkpoint)); !dropped) return dropped;
  }
  return keep_checkpoint(store, name_of(now), folder.reach());
}

Result<void> undo_work_of(const std::string& store, RunStore& run, const std::vector<KeyId>& liars,
                          Console& console) {
  const auto round = first_unaudited(run, liars);
  if (!round) return round.error();
  if (!*round) return {};
  const Result<RoundIndex> back = go_back(store, run, **round);
  if (!back && back.error().code != ErrorCode::kNotFound) return back.error();
  const std::string what =
      fmt::format("nobody had audited what a banned volunteer did in round {}", **round);
  if (back) {
    console.log(LogLevel::kWarning,
                fmt::format("{}: the run goes back to checkpoint {}", what, *back));
  } else {
    console.log(
        LogLevel::kError,
        fmt::format("{}, and {}: later checkpoints may hold false work; restore a backup of "
                    "an earlier one, or begin a new run",
                    what, back.error().message));
  }
  return {};
}

Result<void> undo_work_of_banned(const std::string& store, RunStore& run, Console& console) {
  const auto book = read_access_book(store);
  if (!book) return book.error();
  std::vector<KeyId> banned;
  for (const auto& [key, rule] : book->peers) {
    if (rule.is_banned) banned.push_back(key);
  }
  return undo_work_of(store, run, banned, console);
}

void drop_kept_to_go_back(const std::string& store) {
  for (const RoundIndex checkpoint : kept_checkpoints(store)) {
    // A checkpoint that cannot be dropped only takes room.
    static_cast<void>(drop_kept(store, name_of(checkpoint)));
  }
}

}  // namespace gleaner
