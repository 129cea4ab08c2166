
#include "storage/infer/annif.hpp"

#include <catch2/catch.hpp>

#include "common/data/point_writer.hpp"
#include "common/limits.hpp"
#include "storage/infer/annif_documents.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

using Catch::StartsWith;

// Names and words of a data set with the words "copper" and "zürich".
PredictData small_data(const TempFolder& folder) {
  WordModel words;
  words.points = 2;
  words.words = Vocabulary::of({"copper", "zürich"}, {1, 1}, "test").value();
  write_file(folder.file(kWordModelFile), word_model_json(words));
  write_file(folder.file(kFeatureNamesFile), "copper\nzürich\n");
  write_file(folder.file(kLabelNamesFile), "<http://example.org/p1>\nfruit\n");
  RunIdentity run;
  run.model.features = 2;
  run.model.labels = 2;
  auto data = PredictData::open_names(folder.file(""), run);
  REQUIRE(data.ok());
  return std::move(*data);
}

Prediction predicted(std::vector<PredictedLabel> labels) {
  Prediction prediction;
  prediction.predicted = std::move(labels);
  return prediction;
}

}  // namespace

TEST_CASE("annif: a form is read as programs encode it, and what others send is passed over",
          "[annif]") {
  const TempFolder folder;
  const PredictData data = small_data(folder);
  const auto read = [&](std::string_view body) { return read_annif_question(body, data, true); };
  const auto asked = read(
      "text=Copper+in+Z%C3%BCrich%21&metadata_title=a%26b&project=yso&limit=100&language=fi&&=");
  REQUIRE(asked.ok());
  REQUIRE(asked->inputs.size() == 1);
  REQUIRE(asked->inputs[0].name == "Copper in Zürich!");
  REQUIRE(asked->inputs[0].point.features.size() >= 1);
  REQUIRE(asked->top_k == 100);
  REQUIRE(asked->through_tables);
  REQUIRE(read("text=")->top_k == 10);
  REQUIRE(read("text")->inputs[0].name.empty());
  REQUIRE(read("limit=99999999999&text=a")->top_k == kTopKMax);
  REQUIRE(read("threshold=0.25&text=a")->threshold == 0.25F);
  REQUIRE_FALSE(read_annif_question("text=a", data, false)->through_tables);
}

TEST_CASE("annif: a form that is wrong is refused by the name of its field", "[annif]") {
  const TempFolder folder;
  const PredictData data = small_data(folder);
  for (const auto& [body, field] :
       std::vector<std::pair<std::string, std::string>>{{"", "text: "},
                                                        {"{\"text\":\"a\"}", "text: "},
                                                        {"txet=a", "text: "},
                                                        {"text=a&text=b", "text: "},
                                                        {"text=100%", "text: "},
                                                        {"text=%4", "text: "},
                                                        {"text=%zz", "text: "},
                                                        {"text=a&limit=0", "limit: "},
                                                        {"text=a&limit=-1", "limit: "},
                                                        {"text=a&limit=ten", "limit: "},
                                                        {"text=a&limit=", "limit: "},
                                                        {"text=a&threshold=1.5", "threshold: "},
                                                        {"text=a&threshold=nan", "threshold: "}}) {
    INFO(body);
    const auto refused = read_annif_question(body, data, false);
    REQUIRE(refused.error().code == ErrorCode::kInvalidArgument);
    REQUIRE_THAT(refused.error().message, StartsWith(field));
  }
  REQUIRE_THAT(read_annif_question("text=a", PredictData(), false).error().message,
               StartsWith("text: "));
}

TEST_CASE("annif: a subject's URI is its label's name, without the brackets around an address",
          "[annif]") {
  PredictNames names;
  names.labels = NameTable::of_lines("<http://example.org/p1>\nfruit\n<b>\nhttp://e.org/2\n");
  const std::string json = annif_json(
      predicted({{0, 3, 0.95F}, {1, 0, 0.5F}, {2, 0, 0.5F}, {3, 0, 0.5F}, {7, -2, 0.125F}}), names,
      0);
  const auto entry = [](const std::string& name, const std::string& score) {
    return "{\"uri\":\"" + name + "\",\"label\":\"" + name +
           "\",\"notation\":null,\"score\":" + score + "}";
  };
  REQUIRE(json == "{\"results\":[" + entry("http://example.org/p1", "0.95") + "," +
                      entry("fruit", "0.5") + "," + entry("<b>", "0.5") + "," +
                      entry("http://e.org/2", "0.5") + "," + entry("7", "0.125") + "]}\n");
  REQUIRE(annif_json(predicted({{1, 0, 0.5F}, {1, -2, 0.125F}}), names, 0.5F) ==
          "{\"results\":[" + entry("fruit", "0.5") + "]}\n");
  REQUIRE(annif_json(predicted({}), names, 0) == "{\"results\":[]}\n");
  names.titles = NameTable::of_lines("Fruit, dried\t1.2\n\t\n\t\n\t\n");
  REQUIRE(annif_json(predicted({{0, 0, 0.5F}}), names, 0) ==
          "{\"results\":[{\"uri\":\"http://example.org/p1\",\"label\":\"Fruit, dried\","
          "\"notation\":\"1.2\",\"score\":0.5}]}\n");
}

TEST_CASE("annif: a batch without a text, and documents without subjects, are refused by field",
          "[annif]") {
  const auto refused = [](const char* body, const AnnifLimits& limits = {}) {
    return read_annif_batch(body, limits, PredictData(), false).error().message;
  };
  REQUIRE_THAT(refused("[]"), StartsWith("documents: "));
  REQUIRE_THAT(refused("{\"documents\":[{\"text\":1}]}"), StartsWith("documents[0].text: "));
  REQUIRE_THAT(refused("{}", {"0", {}}), StartsWith("limit: "));
  REQUIRE_THAT(refused("{}", {{}, "2"}), StartsWith("threshold: "));
  REQUIRE(
      annif_learned_lines("[{\"text\":\"a\\nb\",\"subjects\":[{\"uri\":\"u:1\",\"label\":\"x\"}]}]")
          .value() == "{\"text\":\"a\\nb\",\"tags\":[\"u:1\"]}\n");
  REQUIRE_THAT(annif_learned_lines("{}").error().message, StartsWith("body: "));
  REQUIRE_THAT(annif_learned_lines("[{\"text\":\"a\"}]").error().message,
               StartsWith("[0].subjects: "));
  REQUIRE_THAT(annif_learned_lines("[{\"text\":\"a\",\"subjects\":[{}]}]").error().message,
               StartsWith("[0].subjects: "));
}

}  // namespace gleaner
