// Versions of everything that outlives a process or crosses the network.
#pragma once

#include <array>
#include <cstdint>

namespace gleaner {

inline constexpr const char* kBuildVersion = "0.1.0";
// A volunteer offers a range, and the master picks the highest version that it knows.
inline constexpr std::uint32_t kProtocolMin = 16;
inline constexpr std::uint32_t kProtocolMax = 21;
// Since this version, a gradient that a relay may sum has a check
// (common/work/quantized_gradient.hpp).
inline constexpr std::uint32_t kProtocolOfChecks = 18;
// Since this version, runs without a hidden layer are trained in shard-rounds (TrainUnit), by
// kWideRule.
inline constexpr std::uint32_t kProtocolOfRounds = 21;
// The rule by which wide rows learn (common/train/wide/wide_round.hpp). A store of another rule
// answers and is not trained on.
inline constexpr const char* kWideRule = "2";
inline constexpr std::uint32_t kStoreVersion = 6;

// A volunteer's program contains this mark, little endian. The mark identifies the file and its
// protocols without starting it.
struct ProgramMark {
  std::array<char, 24> name{"gleaner-volunteer mark:"};
  std::uint32_t protocol_min = 1;
  std::uint32_t protocol_max = 0;  // below protocol_min: of no program
};

}  // namespace gleaner
