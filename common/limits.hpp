// Hard bounds of what a peer or a file may ask for. A bound that one file needs stands in that
// file: of rows and commits in common/model/row_checks.hpp, of a model's text in
// schema/wire/tables.hpp, of HTTP in common/http/http_server.hpp, of unfinished frames in
// master/entrance.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gleaner {

inline constexpr std::uint32_t kHiddenMax = 4096;
// Bytes. What threads write side by side begins on lines of its own (alignas), or each would wait
// for the others' line.
inline constexpr std::size_t kCacheLine = 64;
inline constexpr std::uint32_t kLanes = 16;  // every hidden width is a multiple of it
inline constexpr std::uint32_t kBatchExamplesMax = 4096;
// Examples x hidden units of a batch, and of all batches of a unit of more than one.
inline constexpr std::uint32_t kBatchCellsMax = 1u << 22;
inline constexpr std::uint32_t kUnitCellsMax = 1u << 22;
inline constexpr std::uint32_t kOutputShardsMax = 4096;
inline constexpr std::uint32_t kInputShardsMax = 256;
inline constexpr std::uint32_t kLabelsMax = 100'000'000;
inline constexpr std::uint32_t kFeaturesMax = 1'000'000'000;
// Weights of a wide row, and rows of a shard of wide rows.
inline constexpr std::uint32_t kWideWeights = 64;
inline constexpr std::uint32_t kWideRowsMax = 1u << 26;
inline constexpr std::uint32_t kTablesMax = 1024;
inline constexpr std::uint32_t kHashBitsMax = 24;
inline constexpr std::uint32_t kTopKMax = 100;
inline constexpr std::uint32_t kStalenessMax = 256;
// The bound of a hidden unit: scales stay within what shards accept, whatever the features' values
// are.
inline constexpr float kActivationMax = 0x1p32F;
inline constexpr float kRateMax = 10.0F;  // a learning rate
// Halvings of the rates in a run; one that diverges all the same is given up.
inline constexpr std::uint32_t kRateHalvingsMax = 20;
inline constexpr std::uint32_t kBatchesPerUnitMax = 64;
// Steps of an input shard's holder in one unit.
inline constexpr std::uint32_t kStepsPerUnitMax = 64;
inline constexpr std::uint32_t kPositivesPerBatchMax = 1u << 22;
// Pairs of example and active neuron of a batch, and the loss of one, in 2^-20 nats.
inline constexpr std::uint64_t kPairsPerBatchMax = std::uint64_t{kBatchExamplesMax} * kLabelsMax;
inline constexpr unsigned kPairLossBits = 30;
// Points asked for in one message, and what its answer aims at.
inline constexpr std::uint32_t kPointsPerRequestMax = 4096;
inline constexpr std::size_t kPointsBytes = std::size_t{512} << 10;
// Chunks of a shard, parts of a commit or a hand-over.
inline constexpr std::uint32_t kPartsMax = 1u << 20;
// Parts of commits that a volunteer sends before the master has put them into its store: enough for
// 300 Mbit/s over 50 ms, and the master holds no more, however long its disk takes.
inline constexpr std::uint32_t kCommitPartsInFlight = 16;
// Volunteers that have gone, in a status.
inline constexpr std::uint32_t kDeparturesMax = 16;
// Table codes in one message: they are bit-packed, so its size alone does not bound them.
inline constexpr std::uint32_t kCodesPerMessageMax = 1u << 24;

inline constexpr std::size_t kFrameBytesMax = std::size_t{64} << 20;
// The size that a message of rows aims at; a single row may exceed it. A slow link is busy with one
// for as long as urgent messages may have to wait: 0.1 s at 10 Mbit/s.
inline constexpr std::size_t kRowsPerChunkBytes = std::size_t{128} << 10;

// Rows of this size that a message holds; at least one.
constexpr std::size_t rows_per_message(std::size_t row_bytes) {
  return row_bytes < kRowsPerChunkBytes ? kRowsPerChunkBytes / row_bytes : 1;
}

// With less, heartbeats would come late behind a message of rows.
inline constexpr double kLimitMegabitsMin = 0.5;
inline constexpr std::size_t kNameBytesMax = 128;
inline constexpr std::size_t kSentenceBytesMax = 1024;
inline constexpr std::size_t kPurposeBytesMax = 200;
inline constexpr std::size_t kInviteBytesMax = 64;  // as text
// Invites that a master keeps, and peers that it remembers.
inline constexpr std::size_t kInvitesMax = 1024;
inline constexpr std::size_t kPeersMax = 4096;
// Digests of the self-test in a Hello (common/train/self_test/self_test.hpp).
inline constexpr std::size_t kKernelDigestsMax = 32;
inline constexpr std::size_t kKernelNameBytesMax = 31;
// The first frame of a connection, a Hello: nobody knows yet who it is from.
inline constexpr std::size_t kIntroductionBytesMax = 4096;

static_assert(std::size_t{kUnitCellsMax} * sizeof(float) * 2 <= kFrameBytesMax &&
                  kBatchCellsMax <= kUnitCellsMax,
              "the gradients of a unit fit a frame, however badly they pack");
static_assert(4 * kNameBytesMax + kInviteBytesMax + kKernelDigestsMax * (kKernelNameBytesMax + 17) +
                      1024 <=
                  kIntroductionBytesMax,
              "a Hello with its texts at their longest fits an introduction");

}  // namespace gleaner
