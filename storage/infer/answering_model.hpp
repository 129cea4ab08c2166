// One checkpoint that answers: exactly, and through its tables where that was asked for, with
// compute threads of its own. One thread at a time.
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

// How much of a processor answers may take: a fraction of one over time, and what was saved up of
// it at once. Pure; time arrives as an argument.
struct AnswerLimits {
  double processor_fraction = std::numeric_limits<double>::infinity();
  double seconds_saved_max = 0;                                      // of processor
  std::size_t inputs_max = std::numeric_limits<std::size_t>::max();  // of one question
  std::size_t requests_waiting_max = 32;                             // further ones are refused

  [[nodiscard]] bool is_bounded() const { return std::isfinite(processor_fraction); }
};

// Invariant: within any time T, what is begun has used at most fraction * T + what may be saved up,
// but for the one answer that went over it.
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

  // Enough for what can wait, such as reading a newer checkpoint.
  [[nodiscard]] bool has_plenty(Instant now) {
    refill(now);
    return !limits_.is_bounded() || left_ >= limits_.seconds_saved_max / 2;
  }

  // Until has_some() is true, in whole seconds.
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
  int nice = 0;                  // how far they give way
  std::uint32_t candidates = 0;  // neurons that the tables may propose; 0: no tables
  std::uint64_t kept_bytes_max = StoredModel::kKeptBytesMax;  // of output shards
  bool reads_all_first = true;                                // rather than with the first question
  AnswerLimits limits;                                        // for the desk
};

class AnsweringModel {
 public:
  // By default reads all that answering needs, as far as it may be kept, so that the first question
  // waits for nothing. Errors as those of StoredModel::open and TableSearch::open.
  static Result<std::unique_ptr<AnsweringModel>> open(std::unique_ptr<RunStore> run,
                                                      const AnsweringOptions& options);

  [[nodiscard]] RoundIndex checkpoint() const { return model_->checkpoint(); }

  [[nodiscard]] const RunIdentity& identity() const { return model_->run().identity(); }

  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const {
    return model_->run().label_counts();
  }

  [[nodiscard]] const ModelConfig& config() const { return model_->config(); }

  [[nodiscard]] bool is_normalised() const { return model_->is_normalised(); }

  [[nodiscard]] bool has_tables() const { return tables_ != nullptr; }

  // Entries per example of what top() returns.
  [[nodiscard]] std::uint32_t entries(std::uint32_t top_k) const { return model_->entries(top_k); }

  // As StoredModel::top and TableSearch::top. Only with has_tables() may `through_tables` be set.
  Result<std::vector<ScoredLabel>> top(std::span<const ExampleView> examples, std::uint32_t top_k,
                                       bool through_tables);

  // Fills `predicted` of all: the best labels, exactly or through the tables, and with `why` the
  // features that decided. Values as they stand in a file are scaled where training scaled them.
  Result<void> predict(std::span<Prediction> examples, std::uint32_t top_k, bool through_tables,
                       bool why);

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
};

}  // namespace gleaner
