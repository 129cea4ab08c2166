#include "tools/cli/print_out.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace gleaner {

Result<void> print_out(const std::string& text) {
  const std::size_t written = std::fwrite(text.data(), 1, text.size(), stdout);
  if (written == text.size() && std::fflush(stdout) == 0) return {};
  return Error{ErrorCode::kIo, fmt::format("the output cannot be written: {}",
                                           std::generic_category().message(errno))};
}

}  // namespace gleaner
