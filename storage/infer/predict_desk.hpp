// Answers questions with the newest checkpoint of a store, one request at a time, on its own
// thread. Either the model stays in memory and follows the store (`gleaner serve`), or it is read
// for a question and freed after a time without questions (the master's page).
//
// Any thread may ask. The desk's thread answers; refusals are immediate.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "common/result.hpp"
#include "common/time.hpp"
#include "storage/infer/annif.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"

namespace gleaner {

struct PredictAnswer {
  unsigned status = 200;  // an HTTP status; 400, 429, 500 and 503 come with a sentence
  std::string body;
  unsigned retry_after_s = 1;  // for 429 and 503
};

// The form of request and answer.
enum class PredictForm : std::uint8_t {
  kJson,        // see read_questions()
  kLines,       // the request of kJson; the answer is one JSON object per line
  kAnnif,       // see read_annif_question()
  kAnnifBatch,  // see read_annif_batch()
};

struct PredictRequest {
  std::string body;
  PredictForm form = PredictForm::kJson;
  AnnifLimits limits{};  // of kAnnifBatch
  std::function<void(PredictAnswer answer)> answer;
  Instant asked{};  // set by ask()
};

// Figures for people and monitoring.
struct PredictFigures {
  RoundIndex checkpoint = 0;
  bool has_model = false, has_tables = false, has_texts = false;
  std::uint64_t examples_there = 0;  // available test examples
  std::uint64_t requests = 0, refused = 0, examples = 0;
  double seconds = 0;                         // total time from ask() to answer
  double p50_seconds = -1, p99_seconds = -1;  // of recent requests; negative: none
  double examples_per_second = 0;             // over the last minute
};

class PredictDesk {
 public:
  struct Source {
    // Opens the store in its present state.
    std::function<Result<std::unique_ptr<RunStore>>()> open;
    // For a followed store: a value that changes whenever the store may have changed; cheap.
    std::function<std::string()> state{};
    // For a followed store: takes a sentence when another model answers, or cannot be read.
    std::function<void(const std::string&)> log{};
  };

  // Reads the model now and follows the store from then on. An empty `data_folder` means no data;
  // data that does not fit the model is an error.
  static Result<std::unique_ptr<PredictDesk>> follow(Source source, AnsweringOptions options,
                                                     const std::string& data_folder);
  // Reads the model when a question comes. Data that does not fit the model is ignored: answers
  // then have numbers and no names.
  static std::unique_ptr<PredictDesk> on_demand(Source source, AnsweringOptions options,
                                                std::string data_folder);
  ~PredictDesk();
  PredictDesk(const PredictDesk&) = delete;
  PredictDesk& operator=(const PredictDesk&) = delete;

  // Refuses the request when too many requests wait.
  void ask(PredictRequest request);

  // For a followed store: looks for another model now, and logs the result.
  void look_again();

  [[nodiscard]] PredictFigures figures() const;

 private:
  struct Done {
    Instant at;
    double seconds = 0;
    std::uint64_t examples = 0;
  };

  // A model with its name, and the data of its run if the run is not the present one.
  struct Found {
    std::string name;
    std::unique_ptr<AnsweringModel> model;
    std::optional<PredictData> data;
  };

  PredictDesk(Source source, AnsweringOptions options, std::string data_folder, bool follows);

  void start();
  void answer_all();
  void follow_store();
  // Replaces the model in use if the store has another.
  Result<void> refresh();
  // Reads a model with another name than `known`, with its data if it belongs to another run.
  // Nullopt when there is none.
  Result<std::optional<Found>> find_other(const std::string& known);
  void use(Found found);
  // Refuses when the budget is used up, and charges the time of the answer.
  PredictAnswer answer_within_budget(const PredictRequest& request, std::uint64_t& examples);
  PredictAnswer answer(const PredictRequest& request, std::uint64_t& examples);
  void note(const PredictAnswer& answer, std::uint64_t examples, Instant asked);

  const Source source_;
  const AnsweringOptions options_;
  const std::string data_folder_;
  const bool follows_;

  // Used by the answering thread only.
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
  std::optional<Found> fresh_;  // will replace model_
  PredictFigures figures_;
  std::deque<Done> done_;

  std::thread answering_;
  std::thread following_;
};

}  // namespace gleaner
