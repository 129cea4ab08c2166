#include "common/data/atomic_file.hpp"

#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

constexpr AtomicFile::Naming kNamings[] = {AtomicFile::Naming::kUnnamedIfPossible,
                                           AtomicFile::Naming::kTemporaryName};

}  // namespace

TEST_CASE("atomic file: nothing is visible before the commit and nothing is left without one",
          "[atomic_file]") {
  const TempFolder folder;
  for (const AtomicFile::Naming naming : kNamings) {
    auto file = std::move(AtomicFile::create(folder.file("a"), naming)).value();
    REQUIRE(file->write("hello", 5).ok());
    CHECK_FALSE(std::filesystem::exists(folder.file("a")));
    file.reset();
    CHECK(folder.entries() == 0);
  }
}

TEST_CASE("atomic file: buffered, rewritten and read back bytes agree", "[atomic_file]") {
  const TempFolder folder;
  auto file = std::move(AtomicFile::create(folder.file("a"))).value();
  std::string expected;
  for (std::size_t size :
       {std::size_t{1}, std::size_t{1} << 20, std::size_t{3} << 20, std::size_t{5}}) {
    const std::string piece(size, static_cast<char>('a' + size % 7));
    expected += piece;
    REQUIRE(file->write(piece.data(), piece.size()).ok());
    REQUIRE(file->size() == expected.size());
  }
  REQUIRE(file->rewrite(2, "XYZ", 3).ok());
  expected.replace(2, 3, "XYZ");
  std::string back(10, ' ');
  REQUIRE(file->read_back(expected.size() - 10, back.data(), 10).ok());
  CHECK(back == expected.substr(expected.size() - 10));
  REQUIRE(file->commit(AtomicFile::Existing::kRefuse).ok());
  file.reset();
  CHECK(read_file(folder.file("a")) == expected);
  CHECK(folder.entries() == 1);
}

TEST_CASE("atomic file: an existing file is replaced or kept as asked", "[atomic_file]") {
  const TempFolder folder;
  for (const AtomicFile::Naming naming : kNamings) {
    write_file(folder.file("a"), "old");
    auto kept = std::move(AtomicFile::create(folder.file("a"), naming)).value();
    REQUIRE(kept->write("new", 3).ok());
    CHECK_THAT(message_of(kept->commit(AtomicFile::Existing::kRefuse)),
               Catch::Contains("File exists"));
    kept.reset();
    CHECK(read_file(folder.file("a")) == "old");
    CHECK(folder.entries() == 1);
    auto file = std::move(AtomicFile::create(folder.file("a"), naming)).value();
    REQUIRE(file->write("new", 3).ok());
    REQUIRE(file->commit(AtomicFile::Existing::kReplace).ok());
    file.reset();
    CHECK(read_file(folder.file("a")) == "new");
    CHECK(folder.entries() == 1);
  }
}

TEST_CASE("atomic file: a missing folder is named with a remedy", "[atomic_file]") {
  const TempFolder folder;
  const auto file = AtomicFile::create(folder.file("no/such"));
  CHECK_THAT(message_of(file), Catch::StartsWith(folder.file("no/such") + ": cannot be created"));
  CHECK_THAT(message_of(file), Catch::EndsWith("create the folder first"));
}

}  // namespace gleaner
