#include "master/finished_run.hpp"

#include <fmt/format.h>

#include "common/model/run_plan.hpp"
#include "master/shell/resume_point.hpp"
#include "storage/engine/rocks_store.hpp"

namespace gleaner {
namespace {

// Examples per second over all timed rounds; negative if there are none.
double speed_over(const std::vector<RoundRecord>& history, const RunPlan& plan) {
  double seconds = 0;
  BatchIndex before = 0;
  std::uint64_t examples = 0;
  for (const RoundRecord& record : history) {
    // Rounds are timed; a round's number of examples follows from the plan.
    std::uint64_t in_round = 0;
    for (BatchIndex batch = before; batch < record.batches; ++batch) {
      in_round += plan.examples_in(batch);
    }
    before = record.batches;
    if (record.examples_per_second <= 0) continue;
    seconds += static_cast<double>(in_round) / record.examples_per_second;
    examples += in_round;
  }
  return seconds > 0 ? static_cast<double>(examples) / seconds : -1;
}

}  // namespace

Result<std::unique_ptr<RunStore>> read_whole(const RunStore& run, const HeldFolder& folder) {
  if (auto in_place = folder.check(); !in_place) return in_place.error();
  auto files = open_rocks_store(folder.path(), OpenMode::kReadOnly);
  if (!files) return files.error();
  auto found = RunStore::open(std::move(*files));
  if (!found || (*found)->checkpoint() == run.checkpoint()) return found;
  return Error{ErrorCode::kCorrupt,
               fmt::format("the store {} is at checkpoint {}, and {} was written: files of it were "
                           "removed or replaced; restore a backup (gleaner restore --help)",
                           folder.path(), (*found)->checkpoint(), run.checkpoint())};
}

Result<RunFinished> finished_run(const RunStore& written, const HeldFolder& folder) {
  const auto whole = read_whole(written, folder);
  if (!whole) return whole.error();
  RunStore& run = **whole;
  const auto history = run.history();
  if (!history) return history.error();
  auto digest = run.checkpoint_digest();
  if (!digest) return digest.error();
  const RunPlan plan(run.identity().model);
  RunFinished finished;
  finished.digest = std::move(*digest);
  finished.checkpoint = run.checkpoint();
  finished.epochs = plan.epochs_done(finished.checkpoint);
  finished.examples_per_second = speed_over(*history, plan);
  for (const RoundRecord& record : *history) {
    if (record.checkpoint != finished.checkpoint) continue;
    finished.precision = record.precision;
    finished.evaluated = record.evaluated;
    finished.evaluated_all = record.evaluated_all;
  }
  const LearningSoFar learning = learning_so_far(*history, finished.checkpoint);
  finished.best_checkpoint = learning.best_checkpoint;
  finished.best_p_at_1 = learning.best_p_at_1;
  const bool is_early = finished.checkpoint < plan.round_count();
  if (is_early) finished.evaluations_since_best = learning.evaluations_since_best;
  return finished;
}

}  // namespace gleaner
