// A volunteer's introduction when it joins.
#pragma once

#include <cstdint>
#include <string>

#include "common/thread_pool.hpp"
#include "schema/messages.hpp"

namespace gleaner::volunteer {

// Measures the machine for a moment with a pool of `threads`. `invite` as text, or empty.
Hello make_hello(const std::string& name, const std::string& invite, std::uint32_t threads,
                 std::uint64_t memory_bytes);

}  // namespace gleaner::volunteer
