#include "tools/python/loaded_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/data/packed_dataset.hpp"
#include "common/data/packed_writer.hpp"
#include "common/machine_facts.hpp"
#include "common/train/kernels.hpp"
#include "storage/keep/open_to_read.hpp"

namespace gleaner {
Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const std::string& path,
                                                       const std::string& data, unsigned threads) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  auto run = open_run_to_read(path);
  if (!run) return run.error();
  const std::string& names = data.empty() && is_model_file(path) ? path : data;
  auto known = names.empty() ? Result<PredictData>(PredictData())
                             : PredictData::open_names(names, (*run)->identity());
  if (!known) return known.error();
  AnsweringOptions options;
  options.threads = threads > 0 ? threads : machine_facts().cores;
  auto model = AnsweringModel::open(std::move(*run), options);
  if (!model) return name_folder(model.error(), path);
  return std::unique_ptr<LoadedModel>(new LoadedModel(std::move(*model), std::move(*known)));
}

Result<Point> LoadedModel::point_of(const std::string& text) const {
  if (data_.words() != nullptr) return data_.words()->point_of(text);
  return Error{ErrorCode::kInvalidArgument,
               "the model knows no words, so it cannot read texts: give data=FOLDER, the folder of "
               "its data set, or load a file of 'gleaner export --data FOLDER'"};
}

Result<BestLabels> LoadedModel::best(std::vector<Point> points, std::uint32_t top_k) {
  std::vector<ExampleView> examples;
  for (Point& point : points) {
    if (model_->is_normalised()) normalize_row(point.values);
    examples.push_back({{}, point.features, point.values});
  }
  const Result<std::vector<ScoredLabel>> scored = model_->top(examples, top_k, false);
  if (!scored) return scored.error();
  BestLabels best;
  best.width = model_->entries(top_k);
  for (const ScoredLabel& label : *scored) {
    best.labels.push_back(label.label);
    best.logits.push_back(label.logit);
  }
  best.probabilities = probabilities_of(model_->config(), *scored);
  return best;
}

Result<BestLabels> LoadedModel::best_of_rows(const CsrRows& rows, std::uint64_t first,
                                             std::uint32_t top_k) {
  if (auto sound = rows.check(model_->config().features, first, "X"); !sound) return sound.error();
  std::vector<Point> points;
  for (std::size_t row = 0; row < rows.rows(); ++row) points.push_back(rows.point(row));
  return best(std::move(points), top_k);
}

Result<BestLabels> LoadedModel::best_of_texts(const std::vector<std::string>& texts,
                                              std::uint32_t top_k) {
  std::vector<Point> points;
  for (const std::string& text : texts) {
    Result<Point> point = point_of(text);
    if (!point) return point.error();
    points.push_back(std::move(*point));
  }
  return best(std::move(points), top_k);
}

Result<std::vector<Contribution>> LoadedModel::why(Point point, std::uint32_t label,
                                                   std::size_t count) {
  const ModelConfig& config = model_->config();
  if (label >= config.labels) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("label {}: the model has the labels 0 to {}", label, config.labels - 1)};
  }
  if (!is_wide(config)) {
    return Error{ErrorCode::kInvalidArgument,
                 "a feature has no part of its own in a score that comes through a hidden layer: "
                 "train with hidden=0"};
  }
  if (model_->is_normalised()) normalize_row(point.values);
  return model_->why({{}, point.features, point.values}, label, count);
}

Result<std::vector<Contribution>> LoadedModel::why_row(const CsrRows& row, std::uint32_t label,
                                                       std::size_t count) {
  if (auto sound = row.check(model_->config().features, 0, "X"); !sound) return sound.error();
  if (row.rows() != 1) return Error{ErrorCode::kInvalidArgument, "X: expected one row"};
  return why(row.point(0), label, count);
}

Result<std::vector<Contribution>> LoadedModel::why_text(const std::string& text,
                                                        std::uint32_t label, std::size_t count) {
  Result<Point> point = point_of(text);
  if (!point) return point.error();
  return why(std::move(*point), label, count);
}

}  // namespace gleaner
