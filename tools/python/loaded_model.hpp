// A trained model within a Python process: the inference of `gleaner predict`, and the same bits.
// It stays as it was opened, whatever becomes of its store. One thread at a time; the work itself
// runs on a pool. Included by module.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/data/packed_writer.hpp"
#include "common/data/point_parser.hpp"
#include "common/machine_facts.hpp"
#include "common/result.hpp"
#include "common/train/kernels.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/keep/open_to_read.hpp"
#include "tools/predict/write_model.hpp"

namespace gleaner {

struct LoadedModel {
  // Opens a run's store or a model file, and reads it whole. `names` is a folder of
  // `gleaner dataset` or a model file that has the names and words; empty: none, unless `path` is a
  // model file, which has its own. `thread_count`: 0 is as many as the process may use.
  static Result<std::unique_ptr<LoadedModel>> open(const std::string& path,
                                                   const std::string& names,
                                                   unsigned thread_count) {
    if (auto level = simd_level_from_environment(); !level) return level.error();
    auto run = open_run_to_read(path);
    if (!run) return run.error();
    auto loaded = std::make_unique<LoadedModel>();
    if (const std::string& known_from = names.empty() && is_model_file(path) ? path : names;
        !known_from.empty()) {
      auto known = PredictData::open_names(known_from, (*run)->identity());
      if (!known) return known.error();
      loaded->data = std::move(*known);
    }
    loaded->threads = thread_count > 0 ? thread_count : machine_facts().cores;
    AnsweringOptions options;
    options.threads = loaded->threads;
    auto model = AnsweringModel::open(std::move(*run), options);
    if (!model) return name_folder(model.error(), path);
    loaded->model = std::move(*model);
    return loaded;
  }

  // In the child of a fork(), before anything else: the threads of the parent do not exist there.
  void forget_threads() { model->pool().forget_threads(); }

  // As write_model(), with names and words.
  Result<void> save(const std::string& path) {
    std::vector<ModelPart> parts(1);
    // Borrowed: the pointer owns nothing.
    parts[0].run = std::shared_ptr<RunStore>(std::shared_ptr<void>(), &model->run());
    parts[0].name = "the model";
    Result<std::string> digest = parts[0].run->checkpoint_digest();
    if (!digest) return digest.error();
    parts[0].digest = std::move(*digest);
    ModelTarget target;
    target.path = path;
    target.data = &data;
    const auto written = write_model(parts, target, [](std::uint64_t, std::uint64_t) {});
    return written ? Result<void>() : written.error();
  }

  // The best labels of each example, best first: model->entries(top_k) for each. Values are as they
  // stand in the data: they are scaled here if training scaled them.
  Result<std::vector<ScoredLabel>> best(std::vector<Point> points, std::uint32_t top_k) {
    std::vector<ExampleView> examples;
    for (Point& point : points) examples.push_back(scaled(point));
    if (model->pool().threads() < threads) model->pool().start(threads);
    return model->top(examples, top_k, false);
  }

  // As StoredModel::why, of values as they stand in the data.
  std::vector<Contribution> why(Point point, std::uint32_t label, std::size_t count) {
    return model->why(scaled(point), label, count);
  }

  ExampleView scaled(Point& point) const {
    if (model->is_normalised()) normalize_row(point.values);
    return {{}, point.features, point.values};
  }

  std::unique_ptr<AnsweringModel> model;  // of the same checkpoint for ever
  PredictData data;
  unsigned threads = 0;
};

}  // namespace gleaner
