#include "master/shell/best_checkpoint.hpp"

#include "master/shell/resume_point.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/kept_checkpoints.hpp"

namespace gleaner {
namespace {

constexpr const char* kName = "best";

// The digest of the checkpoint's rows in the history; 0 if there is none.
std::uint64_t rows_digest(RunStore& run, RoundIndex checkpoint) {
  const auto record = run.history_at(checkpoint);
  return record && *record ? (*record)->rows_digest : 0;
}

}  // namespace

Result<bool> BestCheckpoint::keep_if_best() {
  if (auto in_place = folder_.check(); !in_place) return in_place.error();
  const RoundIndex checkpoint = run_.checkpoint();
  if (learning_) {
    const auto record = run_.history_at(checkpoint);
    if (!record) return record.error();
    if (*record && (*record)->evaluated > 0) {
      learning_->add_evaluation(checkpoint, (*record)->precision.at_1());
    }
  } else {
    const auto history = run_.history();
    if (!history) return history.error();
    learning_ = learning_so_far(*history, checkpoint);
  }
  if (learning_->best_checkpoint != checkpoint) return false;
  if (auto kept = link_store(folder_.reach(), kept_path(folder_.path(), kName)); !kept) {
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
