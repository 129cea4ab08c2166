#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "common/counter_random.hpp"
#include "common/model/shard_rows.hpp"
#include "common/portable_math.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/run_store.hpp"
#include "tests/bench/machine/bench_loops.hpp"
#include "tests/bench/machine/bench_timing.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {
namespace {

constexpr RoundIndex kRounds = 8;  // so that files are merged as often as in a run
constexpr std::uint32_t kRowsPerPart = 1024;

SparseUpdate make_update(const ShardMap& map, ShardId shard, std::uint32_t begin,
                         std::uint32_t end) {
  Rng random(4, Purpose::kTest, (std::uint64_t{raw(shard)} << 32) | begin);
  SparseUpdate update;
  for (std::uint32_t row = begin; row < end; ++row) {
    update.rows.push_back(row);
    update.scales.push_back(0.01F / kDeltaLevelMax);
    for (std::uint32_t i = 0; i < map.weights_per_row(shard); ++i) {
      const auto level = static_cast<int>(random.next_below(2 * kDeltaLevelMax + 1));
      update.levels.push_back(static_cast<std::int8_t>(level - kDeltaLevelMax));
    }
    if (map.is_output(shard)) update.biases.push_back(to_half(0.01F * signed_unit(random.next())));
    update.states.push_back(1);
  }
  return update;
}

struct StagedPart {
  ShardId shard{};
  std::uint32_t part = 0;
  std::uint32_t parts = 0;
  SparseUpdate update;
};

// The commits of all shards when all of their rows are touched.
std::vector<StagedPart> make_commits(const ShardMap& map) {
  std::vector<StagedPart> commits;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const std::uint32_t rows = map.row_count(shard);
    const std::uint32_t parts = (rows + kRowsPerPart - 1) / kRowsPerPart;
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint32_t begin = part * kRowsPerPart;
      commits.push_back({shard, part, parts,
                         make_update(map, shard, begin, std::min(begin + kRowsPerPart, rows))});
    }
  }
  return commits;
}

Result<void> stage_round(RunStore& run, RoundIndex round, const std::vector<StagedPart>& commits) {
  for (const StagedPart& c : commits) {
    auto staged = run.stage(round, c.shard, c.part, c.parts, c.update);
    if (!staged) return staged;
  }
  return {};
}

Result<std::vector<BenchLine>> bench_run(const std::string& path, const BenchShape& shape) {
  RunIdentity identity;
  identity.model.points = 128 * kRounds;
  identity.model.features = 1000;
  identity.model.labels = shape.stored_rows;
  identity.model.hidden = shape.hidden;
  identity.model.round_batches = 1;
  identity.model.epochs = 1;
  identity.model.hash_bits = 8;
  auto store = open_rocks_store(path, OpenMode::kReadWrite);
  if (!store) return store.error();
  auto created = RunStore::create_or_open(std::move(*store), identity,
                                          std::vector<std::uint32_t>(shape.stored_rows, 1));
  if (!created) return created.error();
  RunStore& run = **created;
  double stage = std::numeric_limits<double>::infinity();
  double fold = stage;
  const std::vector<StagedPart> commits = make_commits(run.shard_map());
  // RocksDB has threads of its own, which merge files after a fold. What the kernel takes to write
  // them depends on their bytes and is a figure of its own.
  double program = kernel_seconds() - processor_seconds();
  for (RoundIndex round = 0; round < kRounds; ++round) {
    Instant start = monotonic_now();
    if (auto staged = stage_round(run, round, commits); !staged) return staged.error();
    stage = std::min(stage, seconds_since(start));
    RoundRecord history;
    history.checkpoint = round + 1;
    start = monotonic_now();
    const double kernel = kernel_seconds();
    if (auto folded = run.fold(round, history); !folded) return folded.error();
    // The first one finds no rows to read: it is not what folds are like.
    if (round > 0) fold = std::min(fold, seconds_since(start) - (kernel_seconds() - kernel));
  }
  program += processor_seconds() - kernel_seconds();
  double rows = 0;
  const Instant start = monotonic_now();
  for (std::uint32_t s = 0; s < run.shard_map().shard_count(); ++s) {
    const std::uint32_t count = run.shard_map().row_count(ShardId{s});
    rows += count;
    for (std::uint32_t begin = 0; begin < count; begin += kRowsPerPart) {
      auto read = run.read_rows(ShardId{s}, begin, std::min(begin + kRowsPerPart, count), kRounds);
      if (!read) return read.error();
    }
  }
  const double read_seconds = seconds_since(start);
  return std::vector<BenchLine>{
      {"stage a commit, on disk", "row", stage / rows, 0, ""},
      {"fold a round, on disk, without the kernel", "row", std::max(fold, 0.0) / rows, 0, ""},
      {"stage and fold, without the kernel", "row", program / (kRounds * rows), 0, ""},
      {"read rows back", "row", read_seconds / rows, 0, ""}};
}

}  // namespace

Result<std::vector<BenchLine>> bench_storage(const BenchShape& shape) {
  std::string folder = shape.folder + "/gleaner-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return Error{ErrorCode::kIo, fmt::format("no folder can be made in {}", shape.folder)};
  }
  const ScratchFolder scratch(folder);
  return bench_run(scratch.path() + "/store", shape);
}

}  // namespace gleaner
