// Versions of everything that outlives a process or crosses the network.
#pragma once

#include <cstdint>

namespace gleaner {

inline constexpr const char* kBuildVersion = "0.1.0";
// A volunteer offers a range and the master picks the highest it knows.
inline constexpr std::uint32_t kProtocolMin = 15;
inline constexpr std::uint32_t kProtocolMax = 15;
inline constexpr std::uint32_t kStoreVersion = 6;
inline constexpr std::uint32_t kPackedDatasetVersion = 1;

}  // namespace gleaner
