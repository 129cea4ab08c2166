#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/look/reports.hpp"

namespace gleaner {
namespace {

std::vector<RoundRecord> two_records() {
  RoundRecord plain;
  plain.checkpoint = 1;
  plain.batches = 64;
  plain.loss = 4.25;
  plain.volunteers = 3;
  RoundRecord full;
  full.checkpoint = 123456;
  full.batches = 7901184;
  full.epoch = 5;
  full.loss = 1234.5;
  full.active = 1000.25;
  full.examples_per_second = 123456.7;
  full.volunteers = 1000;
  full.bytes_down = 101.4;
  full.bytes_up = 187.6;
  full.evaluated = 8000;
  full.evaluated_all = true;
  full.precision.p[0] = 0.6125;
  full.precision.p[1] = 1;
  full.precision.p[2] = 0;
  full.precision.psp[0] = 0.25;
  full.wall_seconds = 1'700'000'000;
  return {plain, full};
}

std::string people_text(const std::vector<RoundRecord>& records) {
  return history_report(records).for_people({});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("history: the table shows what was measured and dashes for the rest", "[tools]") {
  const auto lines = lines_of(people_text(two_records()));
  REQUIRE(lines.size() == 5);
  CHECK_THAT(lines[0], Catch::Contains("P@1 %") && Catch::Contains("examples/s"));
  CHECK(
      lines[1] ==
      "       1       0     4.2500       -           -       3       -     -      -       -      -"
      "        -");
  CHECK(lines[2] ==
        "  123456       5  1234.5000  1000.2      123457    1000     101   188  61.25  100.00   "
        "0.00    25.00");
  for (const std::string& line : lines) CHECK(line.size() <= 100);
}

TEST_CASE("history: precision of a sample is marked as one", "[tools]") {
  auto records = two_records();
  CHECK_THAT(people_text(records), !Catch::Contains("sample"));
  records[1].evaluated_all = false;
  CHECK_THAT(people_text(records), Catch::Contains("sample"));
}

TEST_CASE("history: JSON lines hold every field, in order, null where not measured", "[tools]") {
  const auto lines = lines_of(json_lines(history_report(two_records()).for_programs()["history"]));
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        R"({"checkpoint":1,"batches":64,"epoch":0,"loss":4.25,"active":null,"code_length":null,)"
        R"("examples_per_second":null,"volunteers":3,"bytes_down":null,"bytes_up":null,)"
        R"("evaluated":0,"evaluated_all":false,"p_at_1":null,"p_at_3":null,"p_at_5":null,)"
        R"("psp_at_1":null,"psp_at_3":null,"psp_at_5":null,"p_at_1_halfwidth":null,)"
        R"("ndcg_at_3":null,"ndcg_at_5":null,"calibration_slope":null,"calibration_offset":null,)"
        R"("wall_seconds":0,"rate_cuts":0,"rows_digest":null})");
  const auto full = nlohmann::json::parse(lines[1]);
  CHECK(full["p_at_1"] == 0.6125);
  CHECK(full["p_at_5"] == 0);
  CHECK(full["psp_at_3"].is_null());
  CHECK(full["wall_seconds"] == 1'700'000'000);
}

TEST_CASE("history: an empty run has an empty history", "[tools]") {
  CHECK(lines_of(people_text({})).size() == 3);
  CHECK(json_lines(history_report({}).for_programs()["history"]).empty());
}

}  // namespace
}  // namespace gleaner
