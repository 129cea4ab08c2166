#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/predict/predict_command.hpp"

namespace gleaner {
namespace {

NameTable names_of(std::initializer_list<std::string_view> names) {
  NameTable table;
  for (const std::string_view name : names) table.add(name);
  return table;
}

// Point 1 has labels 0 and 3; label 3 was found, 0 was missed.
Prediction example() {
  Prediction prediction;
  prediction.index = 1;
  prediction.point = {{0, 3}, {2, 5, 7}, {0.3F, -8.49F, 0.3F}};
  prediction.predicted = {{3, 2.0F, 0.875F, true}, {1, -1.0F, 0.25F, false}};
  return prediction;
}

PredictNames example_names() {
  return {names_of({"libc6", "perl"}),
          names_of({"a", "b", "word example", "d", "e", "section devel"}),
          names_of({"first: not it", "hello: example package"})};
}

}  // namespace

TEST_CASE("predict report: text names the point, its words, what is true and what is missed",
          "[predict]") {
  CHECK(prediction_text(example(), example_names(), {}) ==
        "hello: example package\n"
        "  known by: section devel, word example, feature 7\n"
        "    87.5 %  * label 3\n"
        "    25.0 %    perl\n"
        "  missed: libc6\n"
        "\n");
  Prediction unlabelled = example();
  unlabelled.point = {};
  unlabelled.predicted[0].is_true = false;
  CHECK(prediction_text(unlabelled, {}, {}) ==
        "example 1\n"
        "  no features: the model knows nothing of it\n"
        "    87.5 %    label 3\n"
        "    25.0 %    label 1\n"
        "\n");
}

TEST_CASE("predict report: a terminal gets colours, a tick, and lines that fit", "[predict]") {
  PredictLayout layout;
  layout.style = {true, true};
  layout.width = 22;
  const std::string text = prediction_text(example(), example_names(), layout);
  CHECK_THAT(text, Catch::Contains("\x1b["));
  CHECK_THAT(text, Catch::Contains("87.5 %  \u2713 label 3"));
  layout.style.colour = false;
  const std::string plain = prediction_text(example(), example_names(), layout);
  std::size_t begin = 0;
  for (std::size_t end = plain.find('\n'); end != std::string::npos;
       begin = end + 1, end = plain.find('\n', begin)) {
    CHECK(display_width(plain.substr(begin, end - begin)) <= 22);
  }
}

TEST_CASE("predict report: names cannot reach the terminal's controls", "[predict]") {
  PredictNames names = example_names();
  names.points = names_of({"x", "evil \x1b[2J \x07 name"});
  CHECK(prediction_text(example(), names, {}).find('\x1b') == std::string::npos);
  // Nor does broken UTF-8 break a line of JSON.
  names.points = names_of({"x", "caf\xe9"});
  const std::string line = prediction_json(example(), names, FeaturesShown::kStrongest);
  CHECK(nlohmann::json::parse(line)["name"] == "caf\uFFFD");
}

TEST_CASE("predict report: a JSON line has the documented fields", "[predict]") {
  const std::string line = prediction_json(example(), example_names(), FeaturesShown::kStrongest);
  REQUIRE(line.find('\n') == line.size() - 1);
  const nlohmann::json expected = {{"point", 1},
                                   {"name", "hello: example package"},
                                   {"features",
                                    {{{"feature", 5}, {"name", "section devel"}, {"value", -8.49}},
                                     {{"feature", 2}, {"name", "word example"}, {"value", 0.3}},
                                     {{"feature", 7}, {"name", nullptr}, {"value", 0.3}}}},
                                   {"predicted",
                                    {{{"label", 3},
                                      {"name", nullptr},
                                      {"logit", 2.0},
                                      {"probability", 0.875},
                                      {"is_true", true}},
                                     {{"label", 1},
                                      {"name", "perl"},
                                      {"logit", -1.0},
                                      {"probability", 0.25},
                                      {"is_true", false}}}},
                                   {"missed", {{{"label", 0}, {"name", "libc6"}}}}};
  CHECK(nlohmann::json::parse(line) == expected);
}

TEST_CASE("predict report: JSON says nothing of truth or features that nobody knows or wants",
          "[predict]") {
  Prediction unlabelled = example();
  unlabelled.point.labels.clear();
  const auto object = nlohmann::json::parse(prediction_json(unlabelled, {}, FeaturesShown::kNone));
  CHECK_FALSE(object.contains("features"));
  CHECK_FALSE(object.contains("missed"));
  CHECK_FALSE(object["predicted"][0].contains("is_true"));
}

TEST_CASE("predict report: rows have the example's name, and truth where it is known",
          "[predict]") {
  Prediction named = example();
  named.name = "a \"b\",\tc";
  CHECK(prediction_rows(named, example_names(), RowForm::kCsv) ==
        "1,\"a \"\"b\"\",\tc\",3,,0.875,true\n"
        "1,\"a \"\"b\"\",\tc\",1,perl,0.25,false\n");
  named.point.labels.clear();
  CHECK(prediction_rows(named, {}, RowForm::kTsv) ==
        "1\ta \"b\", c\t3\t\t0.875\t\n1\ta \"b\", c\t1\t\t0.25\t\n");
}

TEST_CASE("predict report: many missed labels are counted, not listed", "[predict]") {
  Prediction prediction = example();
  prediction.point.labels.clear();
  for (std::uint32_t label = 10; label < 40; ++label) prediction.point.labels.push_back(label);
  PredictLayout layout;
  layout.width = 200;
  CHECK_THAT(prediction_text(prediction, {}, layout),
             Catch::Contains("label 20, label 21, and 18 more\n"));
}

TEST_CASE("predict report: the tally counts points with labels only", "[predict]") {
  PredictTally tally;
  CHECK(tally_text(tally).empty());
  Prediction prediction = example();
  tally.add(prediction);
  prediction.predicted[0].is_true = false;
  tally.add(prediction);
  tally.add(prediction);
  prediction.point.labels.clear();
  tally.add(prediction);
  CHECK(tally.points == 4);
  CHECK(tally_text(tally) ==
        "The first prediction is right for 1 of 3 examples with labels "
        "(33.3 %).\n");
}

}  // namespace gleaner
