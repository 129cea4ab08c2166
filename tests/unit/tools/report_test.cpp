#include "tools/cli/report.hpp"

#include <catch2/catch.hpp>

#include "tools/cli/charts.hpp"

namespace gleaner {
namespace {

Report small_report() {
  Report report;
  report.section("model", "Model");
  report.fact("labels", "labels", cell_count(12345));
  report.section("", "");
  ReportTable& table = report.table(
      "rows", {{"name", "name", true}, {"share", "share"}, {"hidden", "", false, false}});
  table.rows.push_back({cell_text("a,\"b\""), cell_share(0.5), cell_count(1)});
  table.rows.push_back({cell_text("longer"), cell_measured_share(-1), cell_count(2)});
  report.text("for people\n");
  return report;
}

}  // namespace

TEST_CASE("report: people get aligned text, without what is for programs", "[report]") {
  CHECK(small_report().for_people({}) ==
        "Model\n  labels              12,345\n\n"
        "  name      share\n  a,\"b\"   50.00 %\n  longer        -\nfor people\n");
}

TEST_CASE("report: programs get all fields, null where not measured, in a versioned envelope",
          "[report]") {
  CHECK(json_document("inspect", "run1", small_report().for_programs()) ==
        R"({"gleaner_json":1,"verb":"inspect","subject":"run1","model":{"labels":12345},)"
        R"("rows":[{"name":"a,\"b\"","share":0.5,"hidden":1},)"
        R"({"name":"longer","share":null,"hidden":2}]})"
        "\n");
  CHECK(small_report().as_csv() == "name,share,hidden\n\"a,\"\"b\"\"\",0.5,1\nlonger,,2\n");
}

TEST_CASE("report: text from elsewhere cannot move the cursor", "[report]") {
  Report report;
  report.fact("name", "name", cell_text("a\x1b[2Jb"));
  CHECK_THAT(report.for_people({}), !Catch::Contains("\x1b"));
}

TEST_CASE("report: a table shows people as many rows as it says and counts the rest", "[report]") {
  Report report = small_report();
  ReportTable& table = report.table("more", {{"n", "n"}});
  for (std::uint64_t i = 0; i < 9; ++i) table.rows.push_back({cell_count(i)});
  table.people_rows_max = 2;
  CHECK_THAT(report.for_people({}), Catch::Contains("and 7 more"));
  CHECK(report.for_programs()["more"].size() == 9);
}

TEST_CASE("chart: curves rise from the left, marks say which is which", "[report]") {
  const Curve rising{'1', Colour::kNone, "P@1", {{1, 0.25}, {2, 0.5}, {3, 0.75}}};
  const std::string text = curve_chart({rising}, "epoch", {.width = 20, .height = 5, .style = {}});
  CHECK(text ==
        "    75.0 % |                 111\n"
        "           |            11111\n"
        "           |        1111\n"
        "    37.5 % |   11111\n"
        "    25.0 % |111\n"
        "           +--------------------\n"
        "            1            epoch 3\n"
        "            1 P@1\n");
}

TEST_CASE("chart: one point is no curve", "[report]") {
  CHECK(curve_chart({{'1', Colour::kNone, "P@1", {{1, 0.25}}}}, "epoch", {}).empty());
  CHECK(curve_chart({}, "epoch", {}).empty());
}

}  // namespace gleaner
