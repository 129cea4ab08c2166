#include "master/core/view/run_view.hpp"

namespace gleaner {

CoreSnapshot RunView::snapshot() const {
  CoreSnapshot view;
  view.waiting_for = waiting_for();
  view.stage = life_.is_done                                  ? RunStage::kDone
               : rounds_.is_stopping()                        ? RunStage::kStopping
               : evaluations_.current()                       ? RunStage::kEvaluating
               : !life_.is_started || sessions_.active() == 0 ? RunStage::kWaiting
                                                              : RunStage::kTraining;
  view.round = rounds_.checkpoint();
  view.rounds = run_.plan.round_count();
  view.batch = pipeline_.applied();
  view.batches = run_.plan.batch_count();
  view.epoch = run_.plan.epoch_of(view.batch);
  view.epochs = run_.model.epochs;
  view.staleness = run_.map.is_wide() ? 0 : run_.plan.lag(view.batch);
  view.examples = meter_.examples();
  view.unit_bytes_down = meter_.unit_bytes_down();
  view.unit_bytes_up = meter_.unit_bytes_up();
  view.loss = rounds_.last_record().loss;
  view.active = rounds_.last_record().active;
  view.last_evaluation = evaluations_.last();
  for (const auto& [id, session] : sessions_.all()) {
    if (session.phase == SessionPhase::kIntroducing) continue;
    view.volunteers.push_back({session.name(), session.peer, session.standing.is_local,
                               session.hello.cores,
                               static_cast<std::uint32_t>(leases_.count_held_by(id)), session.speed,
                               session.round_trip_us});
  }
  return view;
}

RunNews RunView::news() const {
  RunNews news;
  const BatchIndex applied = pipeline_.applied();
  news.round = rounds_.checkpoint();
  news.rounds = run_.plan.round_count();
  news.epoch = run_.plan.epoch_of(applied);
  news.epochs = run_.model.epochs;
  news.volunteers = sessions_.active();
  news.precision_at_1 = static_cast<float>(evaluations_.last().precision.at_1());
  // Volunteers are not told of each other.
  news.waiting_for = wait().owner == WaitOwner::kVolunteers && !waiting_for().empty()
                         ? "the work of other volunteers"
                         : waiting_for();
  return news;
}

void RunView::note_progress() {
  const auto& evaluation = evaluations_.current();
  const std::uint64_t steps = pipeline_.applied() + rounds_.checkpoint() +
                              (evaluation ? evaluation->points_scored() : 0) +
                              evaluations_.evaluated();
  if (steps == steps_ && last_step_ != Instant{}) return;
  steps_ = steps;
  last_step_ = outbox_.now();
}

}  // namespace gleaner
