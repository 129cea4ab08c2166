// How long a master that starts again takes to have the charts of a long run: the history is read
// from the store, condensed, and answered once.
//   history_bench [CHECKPOINTS [FOLDER]]
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "common/time.hpp"
#include "master/see/view_json.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/run_store.hpp"

namespace gleaner {
namespace {

template <typename T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "{}\n", result.error().message);
    std::exit(1);
  }
  return std::move(result).value();
}

template <typename Body>
void measure(const char* what, const Body& body) {
  const Instant start = monotonic_now();
  body();
  fmt::print("{}: {:.3f} s\n", what,
             std::chrono::duration<double>(monotonic_now() - start).count());
}

int run_bench(RoundIndex checkpoints, const std::string& path) {
  RunIdentity identity;
  identity.model.points = 128;
  identity.model.features = 10;
  identity.model.labels = 10;
  identity.model.output_shards = 1;
  identity.model.round_batches = 1;
  const auto store =
      must(RunStore::create_or_open(must(open_rocks_store(path, OpenMode::kReadWrite)), identity,
                                    std::vector<std::uint32_t>(10, 1)));
  for (RoundIndex i = 1; i <= checkpoints; ++i) {
    RoundRecord record;
    record.checkpoint = i;
    record.batches = i;
    record.loss = 10 + 1.0 / i;
    record.active = 1000.25;
    record.examples_per_second = 12'345.6 + i % 100;
    record.wall_seconds = 1'700'000'000 + i;
    if (const auto put = store->put_history(record); !put) {
      fmt::print(stderr, "{}\n", put.error().message);
      return 1;
    }
  }
  std::vector<RoundRecord> records;
  HistorySeries series;
  std::string json;
  measure("read", [&] { records = must(store->history()); });
  measure("take", [&] { series.replace(records); });
  measure("answer, 700 pieces",
          [&] { json = history_json(series, 0, std::numeric_limits<RoundIndex>::max(), 700); });
  return records.size() == checkpoints && series.records().size() == checkpoints ? 0 : 1;
}

}  // namespace
}  // namespace gleaner

int main(int argc, char** argv) {
  const auto checkpoints = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1'000'000;
  std::string folder = argc > 2 ? argv[2] : std::filesystem::temp_directory_path().string();
  folder += "/gleaner-history-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    fmt::print(stderr, "no folder can be made for the store: {}\n", folder);
    return 1;
  }
  const int status =
      gleaner::run_bench(static_cast<gleaner::RoundIndex>(checkpoints), folder + "/store");
  std::filesystem::remove_all(folder);
  return status;
}
