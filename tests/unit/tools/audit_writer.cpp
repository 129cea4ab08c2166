// Makes a store of the sound run, in table files, and a backup of it:
//   audit_writer STORE CHECKPOINT BACKUPS [VERSION]
// With a version, the store says afterwards that it is of that one.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>

#include "storage/engine/rocks_store.hpp"
#include "storage/keep/backup.hpp"
#include "storage/record.hpp"
#include "storage/run_records.hpp"
#include "storage/run_store_impl.hpp"
#include "tests/unit/tools/sound_run.hpp"

namespace gleaner::test {
namespace {

Result<void> write_all(const std::string& folder, RoundIndex checkpoint,
                       const std::string& backups) {
  {
    auto store = open_rocks_store(folder, OpenMode::kReadWrite, {.bulk_bytes = 1});
    if (!store) return store.error();
    if (auto made = make_sound_run(std::move(*store), checkpoint); !made) return made;
  }
  // Opened again, so that what was in the log is in tables.
  auto store = open_rocks_store(folder, OpenMode::kReadWrite);
  if (!store) return store.error();
  const auto snapshot = (*store)->snapshot();
  if (!snapshot) return snapshot.error();
  auto folder_of_backups = BackupFolder::open(backups, BackupAccess::kWrite);
  if (!folder_of_backups) return folder_of_backups.error();
  const std::atomic<bool> is_stopped{false};
  const auto added = (*folder_of_backups)->add(*snapshot, is_stopped);
  if (!added) return added.error();
  return {};
}

Result<void> set_version(const std::string& folder, std::uint32_t version) {
  auto store = open_rocks_store(folder, OpenMode::kReadWrite);
  if (!store) return store.error();
  const auto text = get_text(**store, Table::kRun, as_bytes(kIdentityKey));
  if (!text) return text.error();
  auto identity = decode_record<IdentityRecord>(text->value());
  identity->store_version = version;
  WriteBatch batch;
  put_text(batch, Table::kRun, as_bytes(kIdentityKey), encode_record(*identity));
  return (*store)->write(std::move(batch), Durability::kSync);
}

}  // namespace
}  // namespace gleaner::test

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  const auto checkpoint = static_cast<gleaner::RoundIndex>(std::strtoul(argv[2], nullptr, 10));
  auto done = gleaner::test::write_all(argv[1], checkpoint, argv[3]);
  if (done && argc == 5) {
    done = gleaner::test::set_version(
        argv[1], static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)));
  }
  if (done) return 0;
  fmt::print(stderr, "{}\n", done.error().message);
  return 1;
}
