// Results in tests.
#pragma once

#include <catch2/catch.hpp>
#include <string>
#include <utility>

#include "common/result.hpp"

namespace gleaner::test {

// The value, or a failed test with the error's sentence.
template <typename T>
T require_value(Result<T> result) {
  if (!result.ok()) FAIL(result.error().message);
  return std::move(result).value();
}

inline void require_ok(const Result<void>& result) {
  if (!result.ok()) FAIL(result.error().message);
}

template <typename T>
void check_error(const Result<T>& result, ErrorCode code, const std::string& part) {
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().code == code);
  CHECK_THAT(result.error().message, Catch::Contains(part));
}

}  // namespace gleaner::test
