#include "volunteer/identity.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner::volunteer {
namespace {

using gleaner::test::TemporaryFolder;

void write_identity(const TemporaryFolder& cache, const std::string& text) {
  std::ofstream(cache.path() + "/identity") << text;
}

}  // namespace

TEST_CASE("identity: a cache folder keeps who the volunteer is, and nothing else", "[identity]") {
  const TemporaryFolder cache;
  const Result<Identity> first = load_identity(cache.path());
  REQUIRE(first.ok());
  const Result<Identity> again = load_identity(cache.path());
  REQUIRE(again.ok());
  REQUIRE(*again == *first);
  const std::filesystem::directory_iterator files(cache.path());
  REQUIRE(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("identity: an empty file, as a power cut leaves it, is made again", "[identity]") {
  const TemporaryFolder cache;
  write_identity(cache, "");
  const Result<Identity> made = load_identity(cache.path());
  REQUIRE(made.ok());
  REQUIRE(*load_identity(cache.path()) == *made);
}

TEST_CASE("identity: a file that holds something else is refused by name", "[identity]") {
  const TemporaryFolder cache;
  write_identity(cache, "0123456789abcdef");
  const Result<Identity> refused = load_identity(cache.path());
  REQUIRE_FALSE(refused.ok());
  REQUIRE_THAT(refused.error().message, Catch::Contains(cache.path() + "/identity"));
}

}  // namespace gleaner::volunteer
