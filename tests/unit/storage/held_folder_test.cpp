#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "storage/engine/store_folder.hpp"
#include "tests/unit/storage/rocks_run.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;
using test::check_error;
using test::require_ok;
using test::require_value;
using test::TemporaryFolder;

TEST_CASE("held folder: it says whether it was moved, removed or replaced", "[storage]") {
  const TemporaryFolder home;
  const std::string path = home.path() + "/store";
  const std::string other = home.path() + "/other";
  fs::create_directory(path);
  const auto folder = require_value(HeldFolder::open(path, "the store", "do something"));
  require_ok(folder->check());
  fs::rename(path, other);
  check_error(folder->check(), ErrorCode::kIdentity,
              "the store " + path + " was moved to " + other + " while it was written to: do some");
  fs::create_directory(path);
  check_error(folder->check(), ErrorCode::kIdentity, "there is another folder in its place");
  std::ofstream(folder->reach() + "/file") << "goes along";
  CHECK(fs::exists(other + "/file"));
  CHECK(fs::is_empty(path));
  fs::remove_all(other);
  check_error(folder->check(), ErrorCode::kIdentity, "was removed, and there is another");
  fs::remove(path);
  check_error(folder->check(), ErrorCode::kIdentity, "was removed while");
  CHECK(folder->named({ErrorCode::kIo, folder->reach() + "/x: no"}).message == path + "/x: no");
}

TEST_CASE("held folder: a store that is moved is written where it is, and no more", "[storage]") {
  const TemporaryFolder home;
  const std::string path = home.path() + "/store";
  const std::string other = home.path() + "/other";
  std::string digest;
  {
    const auto run = gleaner::open_run(path);
    require_ok(test::train_to(*run, 2));
    digest = require_value(run->checkpoint_digest());
    fs::rename(path, other);
    check_error(test::train_to(*run, 3), ErrorCode::kIdentity, "was moved to " + other);
  }
  CHECK_FALSE(fs::exists(path));
  CHECK(digest_of(other) == digest);
}

TEST_CASE("held folder: what was removed is not made again", "[storage]") {
  const TemporaryFolder home;
  const std::string path = home.path() + "/store";
  const auto folder = require_value(hold_store_folder(path));
  test::require_value(open_rocks_store(folder, {})).reset();
  for (const auto& file : fs::directory_iterator(path)) fs::remove_all(file.path());
  check_error(open_rocks_store(folder, {}), ErrorCode::kIdentity, "lost its files");
  CHECK(fs::is_empty(path));
  fs::remove_all(path);
  check_error(open_rocks_store(folder, {}), ErrorCode::kIdentity, "was removed");
  CHECK_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace gleaner
