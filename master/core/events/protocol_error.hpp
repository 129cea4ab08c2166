// The error of a message that breaks the protocol; its session ends with the sentence.
#pragma once

#include <fmt/format.h>

#include <utility>

#include "common/result.hpp"

namespace gleaner {

template <typename... Args>
Error protocol_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error{ErrorCode::kProtocol, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace gleaner
