#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "master/core/learning_so_far.hpp"

namespace gleaner {
namespace {

using Batches = std::vector<std::pair<std::uint32_t, double>>;

std::optional<Divergence> collapse(double longest, const Batches& batches) {
  CodeLengths lengths(longest);
  for (const auto& [examples, length] : batches) lengths.add(examples, length);
  return lengths.collapse();
}

Divergence shrunk(double to, double from) {
  return {Divergence::Sign::kCodeLength, to, from};
}

}  // namespace

TEST_CASE("divergence: codes that shrink to less than a sixteenth have collapsed", "[divergence]") {
  REQUIRE_FALSE(collapse(0, {{512, 4.0}, {512, 64.0}, {512, 4.0}}));
  REQUIRE(collapse(0, {{512, 64.0}, {512, 3.5}}) == shrunk(3.5, 64));
  // The shortest, held against the longest before it.
  REQUIRE(collapse(0, {{512, 64.0}, {512, 3.5}, {512, 1.0}, {512, 80.0}}) == shrunk(1, 64));
  REQUIRE(collapse(0, {{512, 0.5}, {512, 64.0}}) == std::nullopt);
}

TEST_CASE("divergence: a round that begins weak is not to blame", "[divergence]") {
  CodeLengths lengths(16);
  lengths.add(512, 3.5);
  lengths.add(512, 0.1);
  REQUIRE(lengths.weak_start() == shrunk(3.5, 16));
  REQUIRE_FALSE(lengths.collapse());
  // It is its start that counts.
  REQUIRE(collapse(16, {{512, 4.0}, {512, 0.1}}) == shrunk(0.1, 4));
  CodeLengths strong(16);
  strong.add(512, 4.0);
  strong.add(512, 3.0);
  REQUIRE_FALSE(strong.weak_start());
  REQUIRE_FALSE(collapse(0, {{512, 0.0}}));
}

TEST_CASE("divergence: few examples decide nothing by themselves", "[divergence]") {
  // The last 511 do not make a window.
  REQUIRE_FALSE(collapse(0, {{512, 32.0}, {256, 0.0}, {256, 4.0}, {511, 0.0}}));
  REQUIRE(collapse(0, {{512, 32.0}, {256, 0.0}, {256, 2.0}}) == shrunk(1, 32));
}

TEST_CASE("divergence: it says what it saw", "[divergence]") {
  REQUIRE(sentence({Divergence::Sign::kLoss, 6.25, 2}) ==
          "the loss rose to 6.25 nats an example, from 2");
  REQUIRE(sentence(shrunk(0.5, 16)) ==
          "the quantized activations shrank to a length of 0.5, from 16");
  REQUIRE(sign_name(Divergence::Sign::kLoss) == "loss");
  REQUIRE(sign_name(Divergence::Sign::kCodeLength) == "code_length");
}

}  // namespace gleaner
