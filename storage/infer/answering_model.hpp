// One checkpoint that answers exactly, and through hash tables if requested, with its own compute
// threads. One thread at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/time.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/infer/table_search.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// In the settings of a model file: to_text() of its calibration.
inline constexpr const char* kCalibrationKey = "calibration";

// The checkpoint of the run; of a model file, the checkpoint that the file was made from.
RoundIndex trained_checkpoint(const RunStore& run);

// Limits of the processor time that answers may take.
struct AnswerLimits {
  double processor_fraction = std::numeric_limits<double>::infinity();
  double seconds_saved_max = 0;  // processor seconds that may be saved up
  std::size_t inputs_max = std::numeric_limits<std::size_t>::max();  // inputs of one question
  std::size_t requests_waiting_max = 32;                             // more requests are refused

  [[nodiscard]] bool is_bounded() const { return std::isfinite(processor_fraction); }
};

// Limits answers to processor_fraction over time, plus at most seconds_saved_max at once. Only the
// last answer can exceed this. Pure; time arrives as an argument.
class AnswerBudget {
 public:
  explicit AnswerBudget(const AnswerLimits& limits)
      : limits_(limits), left_(limits.seconds_saved_max) {}

  void spend(double seconds, Instant now) {
    refill(now);
    left_ -= seconds;
  }

  [[nodiscard]] bool has_some(Instant now) {
    refill(now);
    return !limits_.is_bounded() || left_ > 0;
  }

  // Enough for work that can wait, such as reading a newer checkpoint.
  [[nodiscard]] bool has_plenty(Instant now) {
    refill(now);
    return !limits_.is_bounded() || left_ >= limits_.seconds_saved_max / 2;
  }

  // Whole seconds until has_some() is true.
  [[nodiscard]] unsigned seconds_to_wait(Instant now) {
    if (has_some(now)) return 0;
    return 1 + static_cast<unsigned>(std::min(-left_ / limits_.processor_fraction, 1e6));
  }

 private:
  void refill(Instant now) {
    if (!limits_.is_bounded()) return;
    if (now > refilled_) {
      left_ = std::min(limits_.seconds_saved_max,
                       left_ + limits_.processor_fraction * seconds_in(now - refilled_));
    }
    refilled_ = std::max(refilled_, now);
  }

  const AnswerLimits limits_;
  double left_;
  Instant refilled_{};
};

struct AnsweringOptions {
  unsigned threads = 1;
  int nice = 0;                  // of the compute threads
  std::uint32_t candidates = 0;  // most neurons that the tables may propose; 0: no tables
  std::uint64_t kept_bytes_max = StoredModel::kKeptBytesMax;  // of output shards
  bool reads_all_first = true;                                // before the first question
  AnswerLimits limits;                                        // the desk applies them
};

class AnsweringModel {
 public:
  // By default reads everything that answers need, within kept_bytes_max, so that the first
  // question does not wait. Errors as in StoredModel::open and TableSearch::open.
  static Result<std::unique_ptr<AnsweringModel>> open(std::unique_ptr<RunStore> run,
                                                      const AnsweringOptions& options);

  // As trained_checkpoint() has it.
  [[nodiscard]] RoundIndex checkpoint() const { return trained_checkpoint(model_->run()); }

  [[nodiscard]] const RunIdentity& identity() const { return model_->run().identity(); }

  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const {
    return model_->run().label_counts();
  }

  // The map to probabilities that the run fitted last, or that a model file carries.
  [[nodiscard]] const Calibration& calibration() const { return calibration_; }

  [[nodiscard]] const ModelConfig& config() const { return model_->config(); }

  // The run that answers come from, at the checkpoint of the opening, whatever the store has now.
  [[nodiscard]] RunStore& run() { return model_->run(); }

  // The compute threads, between two questions.
  [[nodiscard]] ThreadPool& pool() { return pool_; }

  [[nodiscard]] bool is_normalised() const { return model_->is_normalised(); }

  [[nodiscard]] bool has_tables() const { return tables_ != nullptr; }

  // Entries per example in the result of top().
  [[nodiscard]] std::uint32_t entries(std::uint32_t top_k) const { return model_->entries(top_k); }

  // As StoredModel::top and TableSearch::top. `through_tables` requires has_tables().
  Result<std::vector<ScoredLabel>> top(std::span<const ExampleView> examples, std::uint32_t top_k,
                                       bool through_tables);

  // Sets `predicted` of all examples: the best labels, exactly or through tables, and with `why`
  // the features that decided. Leaves out labels with a probability below `least`. Unscaled values
  // are scaled if training scaled them.
  Result<void> predict(std::span<Prediction> examples, std::uint32_t top_k, bool through_tables,
                       bool why, float least = 0);

  // As StoredModel::why.
  [[nodiscard]] std::vector<Contribution> why(const ExampleView& example, std::uint32_t label,
                                              std::size_t count) const {
    return model_->why(example, label, count);
  }

 private:
  explicit AnsweringModel(const AnsweringOptions& options) : pool_(options.threads, options.nice) {}

  ThreadPool pool_;
  std::unique_ptr<StoredModel> model_;
  std::unique_ptr<TableSearch> tables_;
  Calibration calibration_;
};

// The map of the last evaluation up to the checkpoint, or of the model file that the run was read
// from. Not fitted where there was no evaluation on enough examples.
Result<Calibration> calibration_of(RunStore& run);

}  // namespace gleaner
