#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "common/portable_math.hpp"

namespace gleaner {

TEST_CASE("half: every finite half survives the way to float and back", "[half]") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    if (!is_finite_half(half)) continue;
    REQUIRE(to_half(from_half(half)) == half);
  }
}

TEST_CASE("half: conversion rounds to the nearest, ties to even", "[half]") {
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = from_half(static_cast<std::uint16_t>(bits));
    const float high = from_half(static_cast<std::uint16_t>(bits + 1));
    const float middle = (low + high) / 2;  // exact: one bit more than a half has
    const auto even = static_cast<std::uint16_t>(bits % 2 == 0 ? bits : bits + 1);
    REQUIRE(to_half(middle) == even);
    REQUIRE(to_half(std::nextafter(middle, 0.0F)) == bits);
    REQUIRE(to_half(std::nextafter(middle, 1e9F)) == bits + 1);
    REQUIRE(to_half(-middle) == (even | 0x8000));
  }
}

TEST_CASE("half: what does not fit becomes the largest finite value", "[half]") {
  REQUIRE(from_half(to_half(1e6F)) == 65504.0F);
  REQUIRE(from_half(to_half(-1e6F)) == -65504.0F);
  REQUIRE(from_half(to_half(65519.9F)) == 65504.0F);
  REQUIRE(from_half(to_half(65520.0F)) == 65504.0F);
  REQUIRE(std::isnan(from_half(to_half(std::numeric_limits<float>::quiet_NaN()))));
  REQUIRE_FALSE(is_finite_half(0x7c00));
}

}  // namespace gleaner
