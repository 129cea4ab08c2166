#include "master/shell/best_checkpoint.hpp"

#include <algorithm>

#include "master/shell/resume_point.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/kept_checkpoints.hpp"

namespace gleaner {
namespace {

constexpr const char* kName = "best";

// Digest of the rows at the checkpoint, as the history has it; 0 when it has none.
std::uint64_t rows_digest(RunStore& run, RoundIndex checkpoint) {
  const auto history = run.history();
  if (!history) return 0;
  const auto found = std::ranges::find(*history, checkpoint, &RoundRecord::checkpoint);
  return found == history->end() ? 0 : found->rows_digest;
}

}  // namespace

Result<bool> keep_if_best(const HeldFolder& folder, RunStore& run) {
  if (auto in_place = folder.check(); !in_place) return in_place.error();
  const auto history = run.history();
  if (!history) return history.error();
  const RoundIndex checkpoint = run.checkpoint();
  if (learning_so_far(*history, checkpoint).best_checkpoint != checkpoint) return false;
  if (auto kept = link_store(folder.reach(), kept_path(folder.path(), kName)); !kept) {
    return kept.error();
  }
  return true;
}

std::string kept_best(const std::string& store, RunStore& run, RoundIndex best) {
  const std::string path = kept_path(store, kName);
  auto kept = open_rocks_store(path, OpenMode::kReadOnly);
  if (!kept) return {};
  const auto opened = RunStore::open(std::move(*kept));
  if (!opened || (*opened)->checkpoint() != best) return {};
  const bool is_its = run_name((*opened)->identity()) == run_name(run.identity()) &&
                      rows_digest(**opened, best) == rows_digest(run, best);
  return is_its ? path : std::string();
}

}  // namespace gleaner
