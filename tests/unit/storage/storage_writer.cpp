// Trains the small run of the store's tests in a folder, for tests that watch or kill it:
//   storage_writer FOLDER CHECKPOINT [BULK_BYTES [step]]
// Prints "CHECKPOINT DIGEST" for the checkpoint it finds and for every one it makes. With "step",
// it waits for a byte on stdin before each one it makes.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "storage/engine/rocks_store.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner::test {
namespace {

int fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

int write_run(const char* folder, RoundIndex last, std::size_t bulk_bytes, bool steps) {
  auto store = open_rocks_store(folder, OpenMode::kReadWrite, {.bulk_bytes = bulk_bytes});
  if (!store) return fail(store.error());
  const RunIdentity identity = small_identity();
  auto run = RunStore::create_or_open(std::move(*store), identity, small_label_counts(identity));
  if (!run) return fail(run.error());
  for (RoundIndex checkpoint = (*run)->checkpoint();; ++checkpoint) {
    if (auto trained = train_to(**run, checkpoint); !trained) return fail(trained.error());
    const auto digest = (*run)->checkpoint_digest();
    if (!digest) return fail(digest.error());
    fmt::print("{} {}\n", checkpoint, *digest);
    std::fflush(stdout);
    if (checkpoint >= last) return 0;
    if (steps && std::getchar() == EOF) return 0;
  }
}

}  // namespace
}  // namespace gleaner::test

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const auto last = static_cast<gleaner::RoundIndex>(std::strtoul(argv[2], nullptr, 10));
  const std::size_t bulk_bytes =
      argc > 3 ? std::strtoul(argv[3], nullptr, 10) : gleaner::kRocksBulkBytes;
  return gleaner::test::write_run(argv[1], last, bulk_bytes, argc > 4);
}
