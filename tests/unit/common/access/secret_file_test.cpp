#include "common/access/secret_file.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/access/key_pair.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

using Catch::Matchers::Contains;
using test::TemporaryFolder;

unsigned mode_of(const std::string& path) {
  struct stat facts {};

  REQUIRE(::lstat(path.c_str(), &facts) == 0);
  return facts.st_mode & 07777u;
}

}  // namespace

TEST_CASE("secret file: it is its owner's alone whatever the umask", "[access]") {
  const TemporaryFolder folder;
  for (const ::mode_t mask : {0u, 022u, 0777u}) {
    const ::mode_t before = ::umask(mask);
    const std::string path = folder.path() + "/key" + std::to_string(mask);
    const bool is_new = write_secret_file(path, "one", SecretFile::kNew).ok();
    const unsigned mode = mode_of(path);
    const bool is_replaced = write_secret_file(path, "two", SecretFile::kReplaced).ok();
    ::umask(before);
    REQUIRE((is_new && is_replaced));
    REQUIRE(mode == 0600);
    REQUIRE(mode_of(path) == 0600);
    REQUIRE(read_secret_file(path, 10).value() == "two");
  }
}

TEST_CASE("secret file: one that is there is not replaced by a new one", "[access]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/key";
  REQUIRE(write_secret_file(path, "one", SecretFile::kNew).ok());
  REQUIRE(write_secret_file(path, "two", SecretFile::kNew).ok());
  REQUIRE(read_secret_file(path, 10).value() == "one");
  REQUIRE_FALSE(read_secret_file(path, 2).ok());
  REQUIRE_FALSE(read_secret_file(folder.path() + "/none", 10).value().has_value());
}

TEST_CASE("secret file: a mounted one may be a link and its group's, not everybody's", "[access]") {
  const TemporaryFolder folder;
  const std::string target = folder.path() + "/target", link = folder.path() + "/link";
  std::ofstream(target) << "line";
  std::filesystem::create_symlink(target, link);
  const auto read_with_mode = [&](::mode_t mode) {
    REQUIRE(::chmod(target.c_str(), mode) == 0);
    return read_secret_file(link, 10, SecretFrom::kMount);
  };
  REQUIRE(read_with_mode(0400).value() == "line");
  REQUIRE(read_with_mode(0440).value() == "line");
  for (const ::mode_t mode : {0444u, 0460u, 0601u}) {
    REQUIRE_THAT(read_with_mode(mode).error().message, Contains("chmod 600"));
  }
}

TEST_CASE("secret file: links are not followed, and files of others not believed", "[access]") {
  const TemporaryFolder folder;
  const std::string target = folder.path() + "/target", link = folder.path() + "/link";
  std::ofstream(target) << "mine";
  std::filesystem::create_symlink(target, link);
  REQUIRE_THAT(read_secret_file(link, 10).error().message, Contains("link"));
  REQUIRE(write_secret_file(link, "secret", SecretFile::kReplaced).ok());
  REQUIRE(std::filesystem::is_regular_file(std::filesystem::symlink_status(link)));
  std::string text;
  std::ifstream(target) >> text;
  REQUIRE(text == "mine");
  REQUIRE(::chmod(target.c_str(), 0644) == 0);
  REQUIRE_THAT(read_secret_file(target, 10).error().message, Contains("chmod 600"));
  REQUIRE_THAT(read_secret_file(folder.path(), 10).error().message, Contains("ordinary"));
  // A link under the temporary name is not written through either.
  std::filesystem::create_symlink(target, folder.path() + "/key.new");
  REQUIRE(write_secret_file(folder.path() + "/key", "x", SecretFile::kNew).ok());
  std::ifstream(target) >> text;
  REQUIRE(text == "mine");
}

TEST_CASE("key pair: a file keeps it, and what is no key is refused by name", "[access]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/key";
  REQUIRE(KeyPair::load(path).error().code == ErrorCode::kNotFound);
  const KeyPair made = KeyPair::load_or_make(path).value();
  REQUIRE(KeyPair::load_or_make(path)->id() == made.id());
  REQUIRE(KeyPair::load(path)->derive("a") == made.derive("a"));
  REQUIRE_FALSE(made.derive("a") == made.derive("b"));
  REQUIRE_FALSE(KeyPair::make().derive("a") == made.derive("a"));
  REQUIRE(write_secret_file(path, "gleaner-key-1 nonsense\n", SecretFile::kReplaced).ok());
  const auto refused = KeyPair::load_or_make(path);
  REQUIRE(refused.error().code == ErrorCode::kCorrupt);
  REQUIRE_THAT(refused.error().message, Contains(path));
}

}  // namespace gleaner
