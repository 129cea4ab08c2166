#include "master/see/predict_api.hpp"

#include <fcntl.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

#include "storage/infer/annif.hpp"
#include "storage/infer/annif_documents.hpp"

namespace gleaner {
namespace {

// The part after "/v1/projects/ID" in the path; nullopt for other paths.
std::optional<std::string_view> below_project(std::string_view path) {
  if (!path.starts_with(kAnnifProjectsPath)) return std::nullopt;
  path.remove_prefix(kAnnifProjectsPath.size());
  if (path.size() < 2 || path.front() != '/') return std::nullopt;
  return path.substr(std::min(path.find('/', 1), path.size()));
}

bool is_annif_form(std::string_view path) {
  return path == kAnnifSuggestPath || below_project(path) == "/suggest";
}

bool takes_questions(std::string_view path) {
  return path == kPredictPath || is_annif_form(path) || below_project(path) == "/suggest-batch" ||
         below_project(path) == "/learn";
}

Result<void> append_durably(const std::string& path, std::string_view text) {
  const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const bool is_written = file >= 0 &&
                          ::write(file, text.data(), text.size()) == std::ssize(text) &&
                          ::fdatasync(file) == 0;
  const int code = errno;
  if (file >= 0) ::close(file);
  if (is_written) return {};
  return Error{ErrorCode::kIo,
               path + " cannot be written: " + std::generic_category().message(code)};
}

constexpr const char* kLinesType = "application/x-ndjson";

nlohmann::ordered_json measured(double value) {
  return value < 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(value);
}

std::string model_json(const PredictFigures& figures) {
  const nlohmann::ordered_json json = {
      {"checkpoint", figures.has_model ? nlohmann::ordered_json(figures.checkpoint) : nullptr},
      {"ways", figures.has_tables ? std::vector<std::string>{"tables", "exact"}
                                  : std::vector<std::string>{"exact"}},
      {"reads_texts", figures.has_texts},
      {"test_examples", figures.examples_there},
      {"requests", figures.requests},
      {"refused", figures.refused},
      {"examples", figures.examples},
      {"p50_seconds", measured(figures.p50_seconds)},
      {"p99_seconds", measured(figures.p99_seconds)},
      {"examples_per_second", figures.examples_per_second}};
  return json.dump();
}

}  // namespace

void PredictApi::handle_posts(HttpHandler& handler) {
  handler.takes_post = &takes_questions;
  handler.post = [this](HttpPost post) {
    if (below_project(post.path) == "/learn") return post.answer(learn(post.body));
    PredictRequest request;
    request.body = std::move(post.body);
    if (is_annif_form(post.path)) {
      request.form = PredictForm::kAnnif;
    } else if (below_project(post.path) == "/suggest-batch") {
      request.form = PredictForm::kAnnifBatch;
      const auto given = [&](const char* name) -> std::optional<std::string> {
        const auto found = post.query.find(name);
        return found == post.query.end() ? std::nullopt : std::optional(found->second);
      };
      request.limits = {given("limit"), given("threshold")};
    } else if (post.accept.find(kLinesType) != std::string::npos) {
      request.form = PredictForm::kLines;
    }
    const char* const type = request.form == PredictForm::kLines ? kLinesType : kHttpJson;
    request.answer = [give = post.answer, type](PredictAnswer answer) {
      HttpReply reply = text_reply(answer.status, answer.status == 200 ? type : kHttpText,
                                   std::move(answer.body));
      reply.retry_after_s = answer.retry_after_s;
      give(std::move(reply));
    };
    desk_.ask(std::move(request));
  };
}

std::optional<HttpReply> PredictApi::answer(const HttpRequest& request) const {
  if (request.path == "/v1/model") return text_reply(200, kHttpJson, model_json(desk_.figures()));
  const bool has_model = desk_.figures().has_model;
  if (request.path == kAnnifPath) {
    return text_reply(200, kHttpJson, annif_project_json(has_model, kAnnifProject));
  }
  if (request.path == kAnnifProjectsPath) {
    return text_reply(200, kHttpJson, annif_projects_json(has_model));
  }
  if (below_project(request.path) == "") {
    const std::string id(request.path.substr(kAnnifProjectsPath.size() + 1));
    return text_reply(200, kHttpJson, annif_project_json(has_model, id));
  }
  if (!takes_questions(request.path)) return std::nullopt;
  HttpReply refused = text_reply(405, kHttpText, "Questions are sent with POST.\n");
  refused.allow = "POST";
  return refused;
}

HttpReply PredictApi::learn(std::string_view body) const {
  if (learn_to_.empty()) {
    return text_reply(501, kHttpText,
                      "Nothing is learned here: start gleaner serve with --learn-to FILE.\n");
  }
  const Result<std::string> lines = annif_learned_lines(body);
  if (!lines) return text_reply(400, kHttpText, lines.error().message + "\n");
  const auto written = append_durably(learn_to_, *lines);
  if (!written) return text_reply(503, kHttpText, written.error().message + "\n");
  return text_reply(204, kHttpText, "");
}

std::string PredictApi::metrics(const std::string& run) const {
  using prometheus::ClientMetric;
  using prometheus::MetricType;
  const PredictFigures figures = desk_.figures();
  std::vector<prometheus::MetricFamily> families;
  const auto add = [&](MetricType type, const char* name, const char* help, double value) {
    ClientMetric metric;
    if (!run.empty()) metric.label.push_back({"run", run});
    (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
    families.push_back({name, help, type, {metric}});
  };
  add(MetricType::Gauge, "gleaner_predict_checkpoint", "Checkpoint of the model that answers.",
      static_cast<double>(figures.checkpoint));
  add(MetricType::Counter, "gleaner_predict_examples_total", "Examples that were predicted for.",
      static_cast<double>(figures.examples));
  add(MetricType::Counter, "gleaner_predict_refused_total", "Requests that were not answered.",
      static_cast<double>(figures.refused));
  ClientMetric latency;
  if (!run.empty()) latency.label.push_back({"run", run});
  latency.summary.sample_count = figures.requests;
  latency.summary.sample_sum = figures.seconds;
  if (figures.p50_seconds >= 0) {
    latency.summary.quantile = {{0.5, figures.p50_seconds}, {0.99, figures.p99_seconds}};
  }
  families.push_back({"gleaner_predict_request_seconds",
                      "Time from a request's arrival to its answer, waiting included.",
                      MetricType::Summary,
                      {latency}});
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return out.str();
}

}  // namespace gleaner
