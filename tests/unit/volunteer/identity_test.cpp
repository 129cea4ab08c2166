#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/unit/storage/temporary_folder.hpp"
#include "volunteer/hello.hpp"

namespace gleaner::volunteer {
namespace {

using gleaner::test::TemporaryFolder;

}  // namespace

TEST_CASE("identity: a cache folder keeps who the volunteer is, and nothing else", "[identity]") {
  const TemporaryFolder cache;
  const Result<KeyPair> first = load_identity(cache.path());
  REQUIRE(first.ok());
  REQUIRE(load_identity(cache.path()).value().id() == first->id());
  const std::filesystem::directory_iterator files(cache.path());
  REQUIRE(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("identity: without a folder it is another one each time", "[identity]") {
  REQUIRE_FALSE(load_identity("").value().id() == load_identity("").value().id());
}

TEST_CASE("identity: a folder that cannot be written is named", "[identity]") {
  const Result<KeyPair> refused = load_identity("/proc/nowhere");
  REQUIRE_FALSE(refused.ok());
  REQUIRE_THAT(refused.error().message,
               Catch::Contains("/proc/nowhere/key") && Catch::Contains("--cache"));
}

}  // namespace gleaner::volunteer
