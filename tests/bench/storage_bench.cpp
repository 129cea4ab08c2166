// Times of staging, folding, reading and digesting a run on RocksDB.
//   storage_bench [LABELS [HIDDEN [ROUNDS [PERCENT_TOUCHED [FOLDER]]]]]
// Or: gives every row of an existing run a record, in several rounds, of which the last stays
// staged, so that a master can be started on a store of any size. The rows are not trained.
//   storage_bench fill STORE ROUNDS
// Or: how long a backup of a store keeps its writer waiting.
//   storage_bench freeze STORE
#include <fmt/format.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "common/counter_random.hpp"
#include "common/time.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/run_store.hpp"
#include "tests/support/random_delta.hpp"

namespace gleaner {
namespace {

[[noreturn]] void fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  std::exit(1);
}

template <typename T>
T must(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(result).value();
}

void must(const Result<void>& result) {
  if (!result) fail(result.error());
}

struct Cost {
  double seconds = 0;
  double cpu_seconds = 0;  // of this thread; the rest is the disk, and other programs

  [[nodiscard]] std::string text() const {
    return fmt::format("{:.3f} s ({:.3f} s of processor)", seconds, cpu_seconds);
  }
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

template <typename Body>
Cost measure(const Body& body) {
  const Instant start = monotonic_now();
  const double cpu_start = cpu_seconds();
  body();
  return {std::chrono::duration<double>(monotonic_now() - start).count(),
          cpu_seconds() - cpu_start};
}

SparseUpdate make_update(const ShardMap& map, ShardId shard, std::uint32_t begin, std::uint32_t end,
                         RoundIndex round, std::uint64_t percent) {
  Rng random(round, Purpose::kTest, (std::uint64_t{raw(shard)} << 32) | begin);
  SparseUpdate update;
  for (std::uint32_t row = begin; row < end; ++row) {
    if (!random.chance(percent, 100)) continue;
    update.rows.push_back(row);
    test::push_random_delta(update, map, shard, 0.01F, random);
    update.states.push_back(1);
  }
  return update;
}

Cost stage_round(RunStore& run, RoundIndex round, std::uint64_t percent) {
  const ShardMap& map = run.shard_map();
  constexpr std::uint32_t kRowsPerPart = 2048;
  Cost spent;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const ShardId shard{s};
    const std::uint32_t rows = map.row_count(shard);
    const std::uint32_t parts = (rows + kRowsPerPart - 1) / kRowsPerPart;
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint32_t begin = part * kRowsPerPart;
      const SparseUpdate update =
          make_update(map, shard, begin, std::min(begin + kRowsPerPart, rows), round, percent);
      const Cost cost = measure([&] { must(run.stage(round, shard, part, parts, update)); });
      spent.seconds += cost.seconds;
      spent.cpu_seconds += cost.cpu_seconds;
    }
  }
  return spent;
}

Cost read_all(RunStore& run) {
  const ShardMap& map = run.shard_map();
  return measure([&] {
    for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
      const std::uint32_t rows = map.row_count(ShardId{s});
      for (std::uint32_t begin = 0; begin < rows; begin += 2048) {
        must(run.read_rows(ShardId{s}, begin, std::min(begin + 2048, rows), run.checkpoint()));
      }
    }
  });
}

std::uintmax_t bytes_in(const std::string& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

// Stages round `round` with the rows of one of `slices` equal slices of each shard.
void stage_slice(RunStore& run, RoundIndex round, std::uint64_t slice, std::uint64_t slices) {
  const ShardMap& map = run.shard_map();
  constexpr std::uint64_t kRowsPerPart = 2048;
  for (std::uint32_t s = 0; s < map.shard_count(); ++s) {
    const std::uint64_t rows = map.row_count(ShardId{s});
    const std::uint64_t first = rows * slice / slices;
    const std::uint64_t last = rows * (slice + 1) / slices;
    const auto parts = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(1, (last - first + kRowsPerPart - 1) / kRowsPerPart));
    for (std::uint32_t part = 0; part < parts; ++part) {
      const std::uint64_t begin = first + part * kRowsPerPart;
      const SparseUpdate update =
          make_update(map, ShardId{s}, static_cast<std::uint32_t>(begin),
                      static_cast<std::uint32_t>(std::min(begin + kRowsPerPart, last)), round, 100);
      must(run.stage(round, ShardId{s}, part, parts, update));
    }
  }
}

int fill(const std::string& path, RoundIndex rounds) {
  const auto run = must(RunStore::open(must(open_rocks_store(path, OpenMode::kReadWrite))));
  const RoundIndex first = run->checkpoint();
  for (RoundIndex round = first; round < first + rounds; ++round) {
    stage_slice(*run, round, round - first, rounds);
    RoundRecord history;
    history.checkpoint = round + 1;
    history.evaluated = 1;
    must(run->fold(round, history));
    fmt::print("checkpoint {}: {} MB\n", round + 1, bytes_in(path) >> 20);
    std::fflush(stdout);
  }
  stage_slice(*run, first + rounds, 0, rounds);
  return 0;
}

long peak_memory_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

int run_bench(std::uint32_t labels, std::uint32_t hidden, RoundIndex rounds, std::uint64_t percent,
              const std::string& folder) {
  RunIdentity identity;
  identity.model.points = std::uint64_t{rounds} * 128;
  identity.model.features = 1000;
  identity.model.labels = labels;
  identity.model.hidden = hidden;
  identity.model.round_batches = 1;
  identity.model.epochs = 2;
  identity.model.hash_bits = 9;
  const std::vector<std::uint32_t> counts(labels, 1);
  const std::string path = folder + "/store";
  const auto open = [&] {
    return must(RunStore::create_or_open(must(open_rocks_store(path, OpenMode::kReadWrite)),
                                         identity, counts));
  };
  auto run = open();
  for (RoundIndex round = 0; round < rounds; ++round) {
    const Cost staged = stage_round(*run, round, percent);
    RoundRecord history;
    history.checkpoint = round + 1;
    const Cost folded = measure([&] { must(run->fold(round, history)); });
    fmt::print("round {}: stage {}, fold {}, {} MB on disk, peak memory {} MB\n", round,
               staged.text(), folded.text(), bytes_in(path) >> 20, peak_memory_mb());
  }
  std::string digest;
  fmt::print("digest {}\n", measure([&] { digest = must(run->checkpoint_digest()); }).text());
  fmt::print("freeze {}\n", measure([&] { must(run->snapshot()); }).text());
  fmt::print("read all rows {}\n", read_all(*run).text());
  const Cost read_only =
      measure([&] { must(RunStore::open(must(open_rocks_store(path, OpenMode::kReadOnly)))); });
  fmt::print("open read-only, beside the master {}\n", read_only.text());
  run.reset();
  fmt::print("reopen {}\n", measure([&] { run = open(); }).text());
  if (must(run->checkpoint_digest()) != digest) {
    fmt::print(stderr, "the digest differs after reopening\n");
    return 1;
  }
  fmt::print("{} MB on disk\n", bytes_in(path) >> 20);
  return 0;
}

int freeze(const std::string& path) {
  const auto run = must(RunStore::open(must(open_rocks_store(path, OpenMode::kReadWrite))));
  std::string folder;
  fmt::print("freeze {}\n", measure([&] { folder = must(run->snapshot()); }).text());
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "fill") {
    return gleaner::fill(argv[2], static_cast<gleaner::RoundIndex>(std::atoi(argv[3])));
  }
  if (argc == 3 && std::string_view(argv[1]) == "freeze") return gleaner::freeze(argv[2]);
  const auto number = [&](int index, std::uint32_t otherwise) {
    return argc > index ? static_cast<std::uint32_t>(std::strtoul(argv[index], nullptr, 10))
                        : otherwise;
  };
  std::string folder = argc > 5 ? argv[5] : std::filesystem::temp_directory_path().string();
  folder += "/gleaner-bench-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "no folder can be made for the store: {}\n", folder);
    return 1;
  }
  const int status =
      gleaner::run_bench(number(1, 2000), number(2, 64), number(3, 3), number(4, 100), folder);
  std::filesystem::remove_all(folder);
  return status;
}
