// Hard bounds of what a peer or a file may ask for. A bound that one file needs stands in that
// file: of rows and commits in common/model/row_checks.hpp, of a model's text in
// schema/wire/tables.hpp, of HTTP in common/http/http_server.hpp, of unfinished frames in
// master/entrance.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gleaner {

inline constexpr std::uint32_t kHiddenMax = 4096;
// Bytes. Data that different threads write begins on separate lines (alignas): threads that write
// to the same line delay each other.
inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::uint32_t kLanes = 16;  // every hidden width is a multiple of it
inline constexpr std::uint32_t kBatchExamplesMax = 4096;
// Examples x hidden units of a batch; and of all batches of a unit, if it has several.
inline constexpr std::uint32_t kBatchCellsMax = 1u << 22;
inline constexpr std::uint32_t kUnitCellsMax = 1u << 22;
inline constexpr std::uint32_t kOutputShardsMax = 4096;
inline constexpr std::uint32_t kInputShardsMax = 256;
inline constexpr std::uint32_t kLabelsMax = 100'000'000;
inline constexpr std::uint32_t kFeaturesMax = 1'000'000'000;
// Weights of a stored row of a wide row; and stored rows of a wide shard.
inline constexpr std::uint32_t kWideWeights = 64;
inline constexpr std::uint32_t kWideRowsMax = 1u << 26;
inline constexpr std::uint32_t kTablesMax = 1024;
inline constexpr std::uint32_t kHashBitsMax = 24;
inline constexpr std::uint32_t kTopKMax = 100;
inline constexpr std::uint32_t kStalenessMax = 256;
// Largest activation of a hidden unit: scales then stay in the range that shards accept, for any
// feature values.
inline constexpr float kActivationMax = 0x1p32F;
inline constexpr float kRateMax = 10.0F;  // a learning rate
// Learning-rate halvings in a run; a run that still diverges ends.
inline constexpr std::uint32_t kRateHalvingsMax = 20;
inline constexpr std::uint32_t kBatchesPerUnitMax = 64;
// Steps of a unit of input shards.
inline constexpr std::uint32_t kStepsPerUnitMax = 64;
inline constexpr std::uint32_t kPositivesPerBatchMax = 1u << 22;
// Pairs of example and active neuron of a batch; and bits of a pair's loss, in 2^-20 nats.
inline constexpr std::uint64_t kPairsPerBatchMax = std::uint64_t{kBatchExamplesMax} * kLabelsMax;
inline constexpr unsigned kPairLossBits = 30;
// Examples in a request; and the approximate size of a reply.
inline constexpr std::uint32_t kPointsPerRequestMax = 4096;
inline constexpr std::size_t kPointsBytes = std::size_t{512} << 10;
// Chunks of a shard; and parts of a commit or a hand-over.
inline constexpr std::uint32_t kPartsMax = 1u << 20;
// Parts of commits that a volunteer sends before the master has stored them: enough for 300 Mbit/s
// over 50 ms, and the master holds no more, however long its disk takes.
inline constexpr std::uint32_t kCommitPartsInFlight = 16;
// Volunteers that have gone, in a status.
inline constexpr std::uint32_t kDeparturesMax = 16;
// Hash codes in one message: they are bit-packed, so its size does not bound them.
inline constexpr std::uint32_t kCodesPerMessageMax = 1u << 24;

inline constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;
// Approximate size of a message of rows; a single row may exceed it. It limits the wait of urgent
// messages on a slow link: 0.1 s at 10 Mbit/s.
inline constexpr std::size_t kRowsPerChunkBytes = std::size_t{128} << 10;

// Rows of this size in a message; at least one.
constexpr std::size_t rows_per_message(std::size_t row_bytes) {
  return row_bytes < kRowsPerChunkBytes ? kRowsPerChunkBytes / row_bytes : 1;
}

// With a lower limit, heartbeats would be late behind a message of rows.
inline constexpr double kLimitMegabitsMin = 0.5;
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kSentenceBytesMax = 1024;
inline constexpr std::size_t kPurposeBytesMax = 200;
inline constexpr std::size_t kInviteBytesMax = 64;  // as text
// Invites that a master keeps; and peers that it remembers.
inline constexpr std::size_t kInvitesMax = 1024;
inline constexpr std::size_t kPeersMax = 4096;
// Digests of the self-test in a Hello (common/train/self_test/self_test.hpp).
inline constexpr std::size_t kKernelDigestsMax = 32;
inline constexpr std::size_t kKernelNameBytesMax = 31;
// The first frame of a connection, a Hello from an unknown sender.
inline constexpr std::size_t kIntroductionBytesMax = 4096;

static_assert(std::size_t{kUnitCellsMax} * sizeof(float) * 2 <= kFrameBytesMax &&
                  kBatchCellsMax <= kUnitCellsMax,
              "the gradients of a unit fit a frame, however badly they pack");
static_assert(4 * kNameBytesMax + kInviteBytesMax + kKernelDigestsMax * (kKernelNameBytesMax + 17) +
                      1024 <=
                  kIntroductionBytesMax,
              "a Hello with its texts at their longest fits an introduction");

}  // namespace gleaner
