// One checkpoint that answers: exactly, and through its tables where that was asked for, with
// compute threads of its own. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/dataset/packed_dataset.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "master/predict/answer_budget.hpp"
#include "master/predict/stored_model.hpp"
#include "master/predict/table_search.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

struct AnsweringOptions {
  unsigned threads = 1;
  int nice = 0;                  // how far they give way
  std::uint32_t candidates = 0;  // neurons that the tables may propose; 0: no tables
  std::uint64_t kept_bytes_max = StoredModel::kKeptBytesMax;  // of output shards
  AnswerLimits limits;                                        // for the desk
};

class AnsweringModel {
 public:
  // Reads all that answering needs, as far as it may be kept, so that the first question waits for
  // nothing. Errors as those of StoredModel::open and TableSearch::open.
  static Result<std::unique_ptr<AnsweringModel>> open(std::unique_ptr<RunStore> run,
                                                      const AnsweringOptions& options);

  [[nodiscard]] RoundIndex checkpoint() const { return model_->checkpoint(); }

  [[nodiscard]] const RunIdentity& identity() const { return model_->run().identity(); }

  [[nodiscard]] const ModelConfig& config() const { return model_->config(); }

  [[nodiscard]] bool is_normalised() const { return model_->is_normalised(); }

  [[nodiscard]] bool has_tables() const { return tables_ != nullptr; }

  // Entries per example of what top() returns.
  [[nodiscard]] std::uint32_t entries(std::uint32_t top_k) const { return model_->entries(top_k); }

  // As StoredModel::top and TableSearch::top. Only with has_tables() may `through_tables` be set.
  Result<std::vector<ScoredLabel>> top(std::span<const ExampleView> examples, std::uint32_t top_k,
                                       bool through_tables);

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
