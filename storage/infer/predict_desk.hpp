// Answers questions with the newest checkpoint of a store, one request at a time, on a thread of
// its own. Either the model is kept at hand and followed (`gleaner serve`), or it is read when a
// question comes and given up when nobody has asked for a while (the master's page).
//
// Any thread may ask; answers are given on the desk's thread, and refusals at once.
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
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/questions.hpp"

namespace gleaner {

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
