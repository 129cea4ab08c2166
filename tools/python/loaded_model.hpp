// A trained model within a Python process: the inference of `gleaner predict`, and the same bits.
// It stays as it was opened, whatever becomes of its store. One thread at a time; the work itself
// runs on a pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/data/point_parser.hpp"
#include "common/result.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"

namespace gleaner {

// The best labels of some examples, best first.
struct BestLabels {
  std::uint32_t width = 0;            // labels for each example
  std::vector<std::uint32_t> labels;  // examples x width, as are the next two
  std::vector<float> logits;
  std::vector<float> probabilities;
};

class LoadedModel {
 public:
  // Opens a run's store or a model file, and reads it whole. `data` is a folder of
  // `gleaner dataset` or a model file that has the names and words; empty: none, unless `path` is a
  // model file, which has its own. `threads`: 0 is as many as the process may use.
  static Result<std::unique_ptr<LoadedModel>> open(const std::string& path, const std::string& data,
                                                   unsigned threads);

  // As AnsweringModel has it; of the same checkpoint for ever.
  [[nodiscard]] const AnsweringModel& model() const { return *model_; }

  [[nodiscard]] const PredictData& data() const { return data_; }

  [[nodiscard]] std::uint64_t checkpoint();

  // In the child of a fork(), before anything else: the threads of the parent do not exist there.
  void forget_threads() { model_->pool().forget_threads(); }

  // As write_model(), with names and words.
  Result<void> save(const std::string& path);

  // Values as they stand in the data: they are scaled here if training scaled them.
  Result<BestLabels> best(std::vector<Point> points, std::uint32_t top_k);

  // As StoredModel::why, of values as they stand in the data.
  std::vector<Contribution> why(Point point, std::uint32_t label, std::size_t count);

 private:
  LoadedModel(std::unique_ptr<AnsweringModel> model, PredictData data, unsigned threads)
      : model_(std::move(model)), data_(std::move(data)), threads_(threads) {}

  std::unique_ptr<AnsweringModel> model_;
  PredictData data_;
  const unsigned threads_;
};

}  // namespace gleaner
