#include "tools/python/loaded_model.hpp"

#include "common/data/packed_writer.hpp"
#include "common/machine_facts.hpp"
#include "common/train/kernels.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/predict/write_model.hpp"

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
  return std::unique_ptr<LoadedModel>(
      new LoadedModel(std::move(*model), std::move(*known), options.threads));
}

std::uint64_t LoadedModel::checkpoint() {
  return model_->checkpoint();
}

Result<void> LoadedModel::save(const std::string& path) {
  std::vector<ModelPart> parts(1);
  // Borrowed: the pointer owns nothing.
  parts[0].run = std::shared_ptr<RunStore>(std::shared_ptr<void>(), &model_->run());
  parts[0].name = "the model";
  Result<std::string> digest = parts[0].run->checkpoint_digest();
  if (!digest) return digest.error();
  parts[0].digest = std::move(*digest);
  ModelTarget target;
  target.path = path;
  target.data = &data_;
  const auto written = write_model(parts, target, [](std::uint64_t, std::uint64_t) {});
  return written ? Result<void>() : written.error();
}

Result<BestLabels> LoadedModel::best(std::vector<Point> points, std::uint32_t top_k) {
  std::vector<ExampleView> examples;
  for (Point& point : points) {
    if (model_->is_normalised()) normalize_row(point.values);
    examples.push_back({{}, point.features, point.values});
  }
  if (model_->pool().threads() < threads_) model_->pool().start(threads_);
  const Result<std::vector<ScoredLabel>> scored = model_->top(examples, top_k, false);
  if (!scored) return scored.error();
  BestLabels best;
  best.width = model_->entries(top_k);
  for (const ScoredLabel& label : *scored) {
    best.labels.push_back(label.label);
    best.logits.push_back(label.logit);
  }
  best.probabilities = probabilities_of(model_->config(), model_->calibration(), *scored);
  return best;
}

std::vector<Contribution> LoadedModel::why(Point point, std::uint32_t label, std::size_t count) {
  if (model_->is_normalised()) normalize_row(point.values);
  return model_->why({{}, point.features, point.values}, label, count);
}

}  // namespace gleaner
