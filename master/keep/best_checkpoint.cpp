#include "master/keep/best_checkpoint.hpp"

#include <utility>

#include "master/tasks/resume_point.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/kept_checkpoints.hpp"

namespace gleaner {
namespace {

constexpr const char* kName = "best";

}  // namespace

Result<void> keep_if_best(const std::string& store, RunStore& run) {
  const auto history = run.history();
  if (!history) return history.error();
  const RoundIndex checkpoint = run.checkpoint();
  if (learning_so_far(*history, checkpoint).best_checkpoint != checkpoint) return {};
  return link_store(store, kept_path(store, kName));
}

std::string kept_best(const std::string& store, RoundIndex best) {
  const std::string path = kept_path(store, kName);
  auto kept = open_rocks_store(path, OpenMode::kReadOnly);
  if (!kept) return {};
  const auto run = RunStore::open(std::move(*kept));
  return run && (*run)->checkpoint() == best ? path : std::string();
}

}  // namespace gleaner
