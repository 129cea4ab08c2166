// Input: the body of a request to a model. An accepted request keeps the limits and fits the model;
// a refusal names a field.
#include <cmath>
#include <string>
#include <string_view>

#include "common/limits.hpp"
#include "common/result.hpp"
#include "storage/infer/annif.hpp"
#include "storage/infer/questions.hpp"

namespace gleaner {
namespace {

void check_question(const Prediction& question, const ModelConfig& model) {
  const Point& point = question.point;
  GLEANER_CHECK(point.features.size() == point.values.size());
  for (std::size_t i = 0; i < point.features.size(); ++i) {
    GLEANER_CHECK(point.features[i] < model.features);
    GLEANER_CHECK(i == 0 || point.features[i - 1] < point.features[i]);
    GLEANER_CHECK(std::isfinite(point.values[i]));
  }
  const std::string json = prediction_json(question, PredictNames(), FeaturesShown::kStrongest);
  GLEANER_CHECK(json.starts_with("{\"point\":") && json.find('\n') == json.size() - 1);
}

}  // namespace
}  // namespace gleaner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  ModelConfig model;
  model.features = 1000;
  // Without words no text is read: every form is refused by the name of a field.
  const auto form = read_annif_question(body, PredictData(), false);
  GLEANER_CHECK(!form && form.error().code == ErrorCode::kInvalidArgument);
  GLEANER_CHECK(form.error().message.find(": ") != std::string::npos);
  for (const bool has_tables : {false, true}) {
    const auto questions = read_questions(body, PredictData(), model, has_tables);
    if (!questions) {
      GLEANER_CHECK(questions.error().code == ErrorCode::kInvalidArgument);
      GLEANER_CHECK(questions.error().message.find(": ") != std::string::npos);
      continue;
    }
    GLEANER_CHECK(questions->top_k >= 1 && questions->top_k <= kTopKMax);
    GLEANER_CHECK(has_tables || !questions->through_tables);
    GLEANER_CHECK(!questions->inputs.empty() &&
                  questions->inputs.size() * questions->top_k <= kQuestionLabelsMax);
    for (const Prediction& question : questions->inputs) check_question(question, model);
  }
  return 0;
}
