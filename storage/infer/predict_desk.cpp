#include "storage/infer/predict_desk.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/thread_pool.hpp"
#include "storage/infer/annif.hpp"
#include "storage/infer/annif_documents.hpp"
#include "storage/infer/questions.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

// How long an unused model is kept, and how long it is taken for the newest without a look.
constexpr Millis kKept{300'000};
constexpr Millis kNewest{2'000};
// A followed store is opened at most once per pause, and for at most a twentieth of the time.
constexpr Millis kLookPause{1'000};
constexpr int kLookShare = 20;
// Number of requests for the latency figures, and time span for the speed.
constexpr std::size_t kDoneKept = 1024;
constexpr Millis kSpeedWindow{60'000};
constexpr double kRetrySecondsMax = 60;

PredictAnswer refusal(unsigned status, const Error& error) {
  return {status, error.message + "\n"};
}

// The processor time that the calling thread has used.
double thread_seconds() {
  rusage used{};
  getrusage(RUSAGE_THREAD, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// kInvalidArgument is the caller's fault. kNotFound, kResources and data that does not fit mean
// that no question can be answered yet.
unsigned status_of(ErrorCode code) {
  if (code == ErrorCode::kInvalidArgument) return 400;
  return code == ErrorCode::kCorrupt ? 500 : 503;
}

std::string joined(RoundIndex checkpoint, bool through_tables,
                   const std::vector<std::string>& lines, bool is_lines) {
  std::string text;
  if (!is_lines) {
    text = fmt::format("{{\"checkpoint\":{},\"way\":\"{}\",\"predictions\":[", checkpoint,
                       through_tables ? "tables" : "exact");
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!is_lines && i > 0) text += ',';
    text += lines[i];
    if (!is_lines) text.pop_back();  // the end of the line
  }
  return is_lines ? text : text + "]}\n";
}

}  // namespace

PredictDesk::PredictDesk(Source source, AnsweringOptions options, std::string data_folder,
                         bool follows)
    : source_(std::move(source)),
      options_(options),
      data_folder_(std::move(data_folder)),
      follows_(follows),
      budget_(options_.limits) {}

Result<std::unique_ptr<PredictDesk>> PredictDesk::follow(Source source, AnsweringOptions options,
                                                         const std::string& data_folder) {
  std::unique_ptr<PredictDesk> desk(new PredictDesk(std::move(source), options, data_folder, true));
  if (auto read = desk->refresh(); !read) return read.error();
  desk->start();
  return desk;
}

std::unique_ptr<PredictDesk> PredictDesk::on_demand(Source source, AnsweringOptions options,
                                                    std::string data_folder) {
  std::unique_ptr<PredictDesk> desk(
      new PredictDesk(std::move(source), options, std::move(data_folder), false));
  desk->start();
  return desk;
}

void PredictDesk::start() {
  answering_ = std::thread([this] { answer_all(); });
  if (follows_) following_ = std::thread([this] { follow_store(); });
}

PredictDesk::~PredictDesk() {
  {
    const std::lock_guard guard(lock_);
    is_stopping_ = true;
  }
  change_.notify_all();
  if (answering_.joinable()) answering_.join();
  if (following_.joinable()) following_.join();
}

void PredictDesk::ask(PredictRequest request) {
  request.asked = monotonic_now();
  PredictAnswer refusal{503, "Too many requests are waiting: ask again later.\n"};
  {
    const std::lock_guard guard(lock_);
    if (!is_stopping_ && waiting_.size() < options_.limits.requests_waiting_max) {
      waiting_.push_back(std::move(request));
      change_.notify_all();
      return;
    }
    ++figures_.refused;
    // Waiting requests will probably wait as long as the last request.
    const double wait = done_.empty() ? 0 : done_.back().seconds;
    refusal.retry_after_s = static_cast<unsigned>(std::clamp(wait + 1, 1.0, kRetrySecondsMax));
  }
  request.answer(std::move(refusal));
}

void PredictDesk::look_again() {
  const std::lock_guard guard(lock_);
  must_look_ = true;
  change_.notify_all();
}

void PredictDesk::use(Found found) {
  model_ = std::move(found.model);
  if (found.data) data_ = std::move(*found.data);
  const std::lock_guard guard(lock_);
  name_ = std::move(found.name);
  figures_.has_model = model_ != nullptr;
  if (model_ == nullptr) return;
  figures_.checkpoint = model_->checkpoint();
  figures_.has_tables = model_->has_tables();
  figures_.has_texts = data_.words() != nullptr;
  figures_.examples_there = data_.examples() == nullptr ? 0 : data_.examples()->points();
}

Result<std::optional<PredictDesk::Found>> PredictDesk::find_other(const std::string& known) {
  auto run = source_.open();
  if (!run) return run.error();
  auto name = model_name(**run);
  if (!name) return name.error();
  if (*name == known) return std::optional<Found>();
  Found found{std::move(*name), nullptr, std::nullopt};
  if (!known.starts_with(run_name((*run)->identity())) && !data_folder_.empty()) {
    auto data = PredictData::open(data_folder_, (*run)->identity());
    if (!data && follows_) return data.error();
    found.data = data ? std::move(*data) : PredictData();
    const WordModel* const words = found.data->words();
    const std::string note = words == nullptr ? "" : words->dictionary_note(data_folder_);
    if (!note.empty() && source_.log) source_.log(note);
  }
  if (!follows_) use({});  // two models need not fit memory
  auto opened = AnsweringModel::open(std::move(*run), options_);
  if (!opened) return opened.error();
  found.model = std::move(*opened);
  return std::optional<Found>(std::move(found));
}

Result<void> PredictDesk::refresh() {
  const Instant now = monotonic_now();
  if (model_ != nullptr && (now - looked_ < kNewest || !budget_.has_plenty(now))) return {};
  auto found = find_other(model_ == nullptr ? std::string() : name_);
  if (!found) return found.error();
  if (*found) use(std::move(**found));
  looked_ = monotonic_now();
  return {};
}

void PredictDesk::answer_all() {
  give_way(options_.nice);
  std::unique_lock guard(lock_);
  for (;;) {
    const bool is_woken =
        change_.wait_for(guard, kKept, [&] { return is_stopping_ || fresh_ || !waiting_.empty(); });
    if (is_stopping_) break;
    std::optional<Found> fresh = std::exchange(fresh_, std::nullopt);
    std::deque<PredictRequest> requests;
    if (!waiting_.empty()) {
      requests.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    guard.unlock();
    if (fresh) use(std::move(*fresh));
    if (!is_woken && !follows_) use({});
    for (const PredictRequest& request : requests) {
      std::uint64_t examples = 0;
      PredictAnswer given = answer_within_budget(request, examples);
      note(given, examples, request.asked);
      request.answer(std::move(given));
    }
    guard.lock();
  }
  for (const PredictRequest& request : waiting_) request.answer({503, "The program ends.\n"});
  waiting_.clear();
}

void PredictDesk::follow_store() {
  give_way(kVolunteerNice);
  std::string seen;     // state of the store when it was last read
  std::string trouble;  // the error that was logged last
  Micros pause = kLookPause;
  std::unique_lock guard(lock_);
  for (;;) {
    change_.wait_for(guard, pause, [&] { return is_stopping_ || (must_look_ && !fresh_); });
    if (is_stopping_) return;
    if (fresh_) continue;
    const std::string known = name_;
    const bool is_asked_for = std::exchange(must_look_, false);
    if (is_asked_for) seen.clear();
    guard.unlock();
    const Instant begin = monotonic_now();
    // Read before the store is: a later change is then seen at the next look.
    std::string state = source_.state();
    Result<std::optional<Found>> found = std::optional<Found>();
    if (state != seen) found = find_other(known);
    if (!found && (is_asked_for || found.error().message != trouble)) {
      trouble = found.error().message;
      source_.log(fmt::format("the model in use goes on answering: {}", trouble));
    }
    if (found) {
      seen = std::move(state);
      trouble.clear();
      if (*found) {
        source_.log(fmt::format("checkpoint {} of run {} answers from now on",
                                (*found)->model->checkpoint(),
                                run_name((*found)->model->identity())));
      } else if (is_asked_for) {
        source_.log("the model in use is the newest");
      }
    }
    pause = std::max<Micros>(kLookPause, kLookShare * (monotonic_now() - begin));
    guard.lock();
    if (!found || !*found) continue;
    fresh_ = std::move(*found);
    change_.notify_all();
  }
}

PredictAnswer PredictDesk::answer_within_budget(const PredictRequest& request,
                                                std::uint64_t& examples) {
  if (const unsigned wait = budget_.seconds_to_wait(monotonic_now()); wait > 0) {
    return {429,
            fmt::format("Earlier questions have used the processor time that this run allows: ask "
                        "again in {} s, or start gleaner serve, which has no such limit.\n",
                        wait),
            wait};
  }
  const double before = thread_seconds();
  PredictAnswer given = answer(request, examples);
  budget_.spend(thread_seconds() - before, monotonic_now());
  return given;
}

PredictAnswer PredictDesk::answer(const PredictRequest& request, std::uint64_t& examples) {
  if (!follows_) {
    if (auto read = refresh(); !read) return refusal(status_of(read.error().code), read.error());
  }
  const bool is_batch = request.form == PredictForm::kAnnifBatch;
  const bool is_annif = is_batch || request.form == PredictForm::kAnnif;
  const bool has_tables = model_->has_tables();
  auto questions = is_batch   ? read_annif_batch(request.body, request.limits, data_, has_tables)
                   : is_annif ? read_annif_question(request.body, data_, has_tables)
                              : read_questions(request.body, data_, model_->config(), has_tables);
  if (!questions) return refusal(status_of(questions.error().code), questions.error());
  if (questions->inputs.size() > options_.limits.inputs_max) {
    return {400, fmt::format("inputs: there are {}, and a training run answers at most {} at once: "
                             "send them in parts, or start gleaner serve\n",
                             questions->inputs.size(), options_.limits.inputs_max)};
  }
  auto predicted = model_->predict(questions->inputs, questions->top_k, questions->through_tables,
                                   !is_annif, questions->threshold);
  if (!predicted) return refusal(500, predicted.error());
  examples = questions->inputs.size();
  if (is_batch) return {200, annif_batch_json(*questions, data_.names())};
  if (is_annif) {
    return {200, annif_json(questions->inputs.front(), data_.names(), questions->threshold)};
  }
  std::vector<std::string> lines;
  for (const Prediction& input : questions->inputs) {
    lines.push_back(prediction_json(input, data_.names(), FeaturesShown::kStrongest));
  }
  return {200, joined(model_->checkpoint(), questions->through_tables, lines,
                      request.form == PredictForm::kLines)};
}

void PredictDesk::note(const PredictAnswer& answer, std::uint64_t examples, Instant asked) {
  const Instant now = monotonic_now();
  const std::lock_guard guard(lock_);
  if (answer.status != 200) {
    ++figures_.refused;
    return;
  }
  const double seconds = seconds_in(now - asked);
  ++figures_.requests;
  figures_.examples += examples;
  figures_.seconds += seconds;
  done_.push_back({now, seconds, examples});
  if (done_.size() > kDoneKept) done_.pop_front();
}

PredictFigures PredictDesk::figures() const {
  const Instant now = monotonic_now();
  const std::lock_guard guard(lock_);
  PredictFigures figures = figures_;
  if (done_.empty()) return figures;
  std::vector<double> seconds;
  std::uint64_t examples = 0;
  Micros span = kSpeedWindow;
  for (const Done& done : done_) {
    seconds.push_back(done.seconds);
    if (now - done.at < kSpeedWindow) examples += done.examples;
  }
  if (done_.size() == kDoneKept) span = std::min(span, now - done_.front().at);
  std::ranges::sort(seconds);
  const auto at = [&](std::size_t percent) {
    return seconds[(seconds.size() * percent + 99) / 100 - 1];
  };
  figures.p50_seconds = at(50);
  figures.p99_seconds = at(99);
  figures.examples_per_second = static_cast<double>(examples) / std::max(seconds_in(span), 1e-3);
  return figures;
}

}  // namespace gleaner
