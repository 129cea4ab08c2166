#include "storage/infer/answering_model.hpp"

#include <cstdlib>
#include <utility>

#include "common/data/packed_writer.hpp"

namespace gleaner {

Result<std::unique_ptr<AnsweringModel>> AnsweringModel::open(std::unique_ptr<RunStore> run,
                                                             const AnsweringOptions& options) {
  std::unique_ptr<AnsweringModel> made(new AnsweringModel(options));
  auto model = StoredModel::open(std::move(run), made->pool_, options.kept_bytes_max);
  if (!model) return model.error();
  made->model_ = std::move(*model);
  const Result<Calibration> calibration = calibration_of(made->run());
  if (!calibration) return calibration.error();
  made->calibration_ = *calibration;
  if (options.candidates != 0) {
    auto tables = TableSearch::open(*made->model_, options.candidates);
    if (!tables) return tables.error();
    made->tables_ = std::move(*tables);
    return made;
  }
  if (!options.reads_all_first) return made;
  // Scoring an example without features reads every shard.
  const ExampleView nothing;
  if (auto read = made->model_->top({&nothing, 1}, 1); !read) return read.error();
  return made;
}

Result<std::vector<ScoredLabel>> AnsweringModel::top(std::span<const ExampleView> examples,
                                                     std::uint32_t top_k, bool through_tables) {
  if (examples.empty()) return std::vector<ScoredLabel>();
  if (!through_tables) return model_->top(examples, top_k);
  GLEANER_CHECK(tables_ != nullptr);
  return tables_->top(model_->encode(examples), top_k);
}

Result<void> AnsweringModel::predict(std::span<Prediction> examples, std::uint32_t top_k,
                                     bool through_tables, bool why, float least) {
  std::vector<std::vector<float>> values;
  std::vector<ExampleView> views;
  for (const Prediction& example : examples) {
    values.push_back(example.point.values);
    if (is_normalised() && !example.is_scaled) normalize_row(values.back());
    views.push_back({example.point.labels, example.point.features, values.back()});
  }
  const auto best = top(views, top_k, through_tables);
  if (!best) return best.error();
  const std::size_t width = entries(top_k);
  for (std::size_t i = 0; i < views.size(); ++i) {
    examples[i].predicted = predicted_labels(
        model_->config(), calibration_,
        std::span<const ScoredLabel>(*best).subspan(i * width, width), views[i].labels);
    std::erase_if(examples[i].predicted, [least](const PredictedLabel& predicted) {
      return predicted.probability < least;
    });
    for (PredictedLabel& predicted : examples[i].predicted) {
      if (why) predicted.why = model_->why(views[i], predicted.label, kContributionsShown);
    }
  }
  return {};
}

RoundIndex trained_checkpoint(const RunStore& run) {
  const auto& settings = run.identity().settings;
  const auto known = settings.find("checkpoint");
  if (run.checkpoint() != 0 || known == settings.end()) return run.checkpoint();
  return static_cast<RoundIndex>(std::strtoull(known->second.c_str(), nullptr, 10));
}

Result<Calibration> calibration_of(RunStore& run) {
  const auto history = run.history();
  if (!history) return history.error();
  for (auto record = history->rbegin(); record != history->rend(); ++record) {
    if (record->checkpoint > run.checkpoint() || !record->calibration.is_fitted()) continue;
    return record->calibration;
  }
  const auto carried = run.identity().settings.find(kCalibrationKey);
  if (run.checkpoint() > 0 || carried == run.identity().settings.end()) return Calibration();
  return calibration_of_text(carried->second);
}

}  // namespace gleaner
