// Answers questions with the newest checkpoint of a store, one request at a time, on a thread of
// its own. Either the model is kept at hand and followed (`gleaner serve`), or it is read when a
// question comes and given up when nobody has asked for a while (the master's page).
//
// Any thread may ask; answers are given on the desk's thread, and refusals at once.
#pragma once

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/result.hpp"
#include "common/thread_pool.hpp"
#include "common/time.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/infer/questions.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/infer/table_search.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

// One checkpoint that answers: exactly, and through its tables where that was asked for, with
// compute threads of its own. One thread at a time.

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

struct PredictAnswer {
  unsigned status = 200;  // as HTTP has them: 400, 429, 500 and 503 come with a sentence
  std::string body;
  unsigned retry_after_s = 1;  // of 429 and 503
};

// How a program asks, and is answered.
enum class PredictForm : std::uint8_t {
  kJson,   // see read_questions()
  kLines,  // asked like kJson, and answered by one JSON object per line, instead of one for all
  kAnnif,  // see read_annif_question()
};

struct PredictRequest {
  std::string body;
  PredictForm form = PredictForm::kJson;
  std::function<void(PredictAnswer answer)> answer;
  Instant asked{};  // set by ask()
};

// Figures for people and monitoring.
struct PredictFigures {
  RoundIndex checkpoint = 0;
  bool has_model = false, has_tables = false, has_texts = false;
  std::uint64_t examples_there = 0;  // test examples
  std::uint64_t requests = 0, refused = 0, examples = 0;
  double seconds = 0;                         // that requests took, from asked to answered
  double p50_seconds = -1, p99_seconds = -1;  // of the last requests; negative: there were none
  double examples_per_second = 0;             // over the last minute
};

class PredictDesk {
 public:
  struct Source {
    // The store as it is now.
    std::function<Result<std::unique_ptr<RunStore>>()> open;
    // For a store that is followed: differs whenever somebody may have changed it; cheap.
    std::function<std::string()> state{};
    // For a store that is followed: takes a sentence when another model answers, or cannot.
    std::function<void(const std::string&)> log{};
  };

  // For a model that is kept at hand: reads it, and follows the store from then on. An empty
  // `data_folder` names no data; what is wrong with another one is an error.
  static Result<std::unique_ptr<PredictDesk>> follow(Source source, AnsweringOptions options,
                                                     const std::string& data_folder);
  // For a model that is read when a question comes. A data folder of which the files do not fit the
  // model is left alone: answers then have numbers and no names.
  static std::unique_ptr<PredictDesk> on_demand(Source source, AnsweringOptions options,
                                                std::string data_folder);
  ~PredictDesk();
  PredictDesk(const PredictDesk&) = delete;
  PredictDesk& operator=(const PredictDesk&) = delete;

  // Refuses the request when too many wait already.
  void ask(PredictRequest request);

  // For a store that is followed: looks now whether it has another model, and says what it finds.
  void look_again();

  [[nodiscard]] PredictFigures figures() const;

 private:
  struct Done {
    Instant at;
    double seconds = 0;
    std::uint64_t examples = 0;
  };

  // A model, by its name, and the data of its run unless they are those in use.
  struct Found {
    std::string name;
    std::unique_ptr<AnsweringModel> model;
    std::optional<PredictData> data;
  };

  PredictDesk(Source source, AnsweringOptions options, std::string data_folder, bool follows);

  void start();
  void answer_all();
  void follow_store();
  // Takes what there is instead of the model in use, if it is another one.
  Result<void> refresh();
  // Finds a model of another name than `known`, with its data where it is of another run than
  // `known`; nullopt when there is none.
  Result<std::optional<Found>> find_other(const std::string& known);
  void use(Found found);
  // Refuses when the budget is used up, and counts what an answer took.
  PredictAnswer answer_within_budget(const PredictRequest& request, std::uint64_t& examples);
  PredictAnswer answer(const PredictRequest& request, std::uint64_t& examples);
  void note(const PredictAnswer& answer, std::uint64_t examples, Instant asked);

  const Source source_;
  const AnsweringOptions options_;
  const std::string data_folder_;
  const bool follows_;

  // The answering thread's.
  std::unique_ptr<AnsweringModel> model_;
  PredictData data_;
  Instant looked_{};
  AnswerBudget budget_;

  mutable std::mutex lock_;
  std::condition_variable change_;
  bool is_stopping_ = false;
  bool must_look_ = false;
  std::deque<PredictRequest> waiting_;
  std::string name_;            // of model_
  std::optional<Found> fresh_;  // takes the place of model_
  PredictFigures figures_;
  std::deque<Done> done_;

  std::thread answering_;
  std::thread following_;
};

}  // namespace gleaner
