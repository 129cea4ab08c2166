// File descriptors: each connection takes one.
#pragma once

#include <cstdint>

namespace gleaner {

// Raises the process's limit as far as the system lets it without privileges; returns the limit
// that then holds. Never fails: what cannot be raised stays as it was.
std::uint64_t raise_descriptor_limit();

}  // namespace gleaner
