#include "common/model/calibration.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "common/counter_random.hpp"

namespace gleaner {
namespace {

// Answers that are true as often as the map says.
std::vector<JudgedLogit> drawn(const Calibration& map, std::size_t count) {
  Rng rng(1, Purpose::kTest);
  std::vector<JudgedLogit> answers;
  for (std::size_t i = 0; i < count; ++i) {
    const auto logit = static_cast<float>(rng.next_below(8000)) / 1000.0F - 4.0F;
    const double probability = 1 / (1 + std::exp(-(map.slope * logit + map.offset)));
    answers.push_back({logit, rng.chance(static_cast<std::uint64_t>(probability * 1e9),
                                         std::uint64_t{1'000'000'000})});
  }
  return answers;
}

}  // namespace

TEST_CASE("calibration: the map by which answers were drawn is found", "[calibration]") {
  for (const Calibration& map : {Calibration{0.5, -1}, Calibration{2, 0.5}, Calibration{1, 0}}) {
    const Calibration found = fit_calibration(drawn(map, 50'000));
    CHECK(found.slope == Approx(map.slope).epsilon(0.05));
    CHECK(found.offset == Approx(map.offset).margin(0.05));
    CHECK(found.apply(2.0F) > found.apply(1.0F));
  }
}

TEST_CASE("calibration: without enough answers of both kinds a logit stays", "[calibration]") {
  const std::vector<JudgedLogit> few = drawn({1, 0}, kCalibrationAnswersMin - 1);
  CHECK_FALSE(fit_calibration(few).is_fitted());
  CHECK_FALSE(fit_calibration(std::vector<JudgedLogit>(500, {1.0F, true})).is_fitted());
  // Higher logits that are less often true tell of no map to use.
  CHECK_FALSE(fit_calibration(drawn({-1, 0}, 5'000)).is_fitted());
  CHECK(Calibration().apply(1.5F) == 1.5F);
}

TEST_CASE("calibration: separable answers and huge logits give a finite map", "[calibration]") {
  std::vector<JudgedLogit> answers;
  for (int i = -200; i < 200; ++i) answers.push_back({static_cast<float>(i) * 1e3F, i >= 0});
  const Calibration found = fit_calibration(answers);
  REQUIRE(found.is_fitted());
  CHECK(std::isfinite(found.apply(3e5F)));
}

TEST_CASE("calibration: its text reads back, and other texts are no map", "[calibration]") {
  const Calibration map{0.123456789012345, -3.25e-7};
  CHECK(calibration_of_text(to_text(map)) == map);
  for (const char* text : {"", "1", "x 1", "1 x", "-1 0", "nan 0", "1 inf", "1 2 3"}) {
    CHECK_FALSE(calibration_of_text(text).is_fitted());
  }
}

}  // namespace gleaner
