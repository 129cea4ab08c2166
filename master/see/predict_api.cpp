#include "master/see/predict_api.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>
#include <vector>

#include "storage/infer/annif.hpp"

namespace gleaner {
namespace {

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
  handler.takes_post = [](std::string_view path) {
    return path == kPredictPath || path == kAnnifSuggestPath;
  };
  handler.post = [this](HttpPost post) {
    PredictRequest request;
    request.body = std::move(post.body);
    if (post.path == kAnnifSuggestPath) {
      request.form = PredictForm::kAnnif;
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
  if (request.path == kAnnifPath) {
    return text_reply(200, kHttpJson, annif_project_json(desk_.figures().has_model));
  }
  if (request.path != kPredictPath && request.path != kAnnifSuggestPath) return std::nullopt;
  HttpReply refused = text_reply(405, kHttpText, "Questions are sent with POST.\n");
  refused.allow = "POST";
  return refused;
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
