#include <catch2/catch.hpp>

#include "storage/infer/answering_model.hpp"

namespace gleaner {
namespace {

Instant moment(double seconds) {
  return Instant(Micros(static_cast<std::int64_t>(seconds * 1e6)));
}

}  // namespace

TEST_CASE("answer budget: what is asked without a pause takes the fraction and no more", "[http]") {
  AnswerBudget budget({0.02, 5, 16});
  double now = 100, used = 0;
  bool was_refused = false;
  while (now < 100 + 3600) {
    if (const unsigned wait = budget.seconds_to_wait(moment(now)); wait > 0) {
      was_refused = true;
      now += wait;
      continue;
    }
    constexpr double kAnswer = 0.3;
    budget.spend(kAnswer, moment(now));
    used += kAnswer;
    now += kAnswer;
  }
  REQUIRE(was_refused);
  REQUIRE(used <= 5 + 0.02 * 3700 + 0.3);
  REQUIRE(used >= 0.02 * 3500);  // it is not stricter than that either
}

TEST_CASE("answer budget: what is saved up has a limit, and what can wait leaves half of it",
          "[http]") {
  AnswerBudget budget({0.02, 5, 16});
  REQUIRE(budget.has_plenty(moment(1e6)));
  budget.spend(2.6, moment(1e6));
  REQUIRE_FALSE(budget.has_plenty(moment(1e6)));
  REQUIRE(budget.has_some(moment(1e6)));
  budget.spend(3.4, moment(1e6));
  REQUIRE_FALSE(budget.has_some(moment(1e6)));
  const unsigned wait = budget.seconds_to_wait(moment(1e6));
  REQUIRE(wait == 51);
  REQUIRE(budget.has_some(moment(1e6 + wait)));
}

TEST_CASE("answer budget: without limits nothing is refused", "[http]") {
  AnswerBudget budget({});
  budget.spend(1e9, moment(1));
  REQUIRE(budget.has_plenty(moment(1)));
  REQUIRE(budget.seconds_to_wait(moment(1)) == 0);
}

}  // namespace gleaner
