#include "tools/predict/serve_access.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

using Catch::Contains;

std::string token_in(const std::string& path) {
  std::string text = read_file(path);
  REQUIRE(text.ends_with('\n'));
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("serve access: an address that others reach takes a word on who is answered", "[serve]") {
  REQUIRE(serve_address({"127.0.0.1:8090", "", false}).value().port == 8090);
  REQUIRE(serve_address({"[::1]:0", "", false}).ok());
  for (const char* address : {"0.0.0.0:8090", "192.168.1.5:1", "[::]:8090"}) {
    INFO(address);
    const auto refused = serve_address({address, "", false});
    REQUIRE(refused.error().code == ErrorCode::kInvalidArgument);
    REQUIRE_THAT(refused.error().message, Contains("--token-file") && Contains("--public"));
    REQUIRE(serve_address({address, "token", false}).ok());
    REQUIRE(serve_address({address, "", true}).ok());
  }
  for (const char* address : {"", "gleaner.example:8090", "127.0.0.1"}) {
    INFO(address);
    REQUIRE_FALSE(serve_address({address, "", true}).ok());
  }
}

TEST_CASE("serve access: a token that is missing is made, for its owner alone, and asked for",
          "[serve]") {
  const TempFolder folder;
  const std::string path = folder.file("token");
  const auto access = ServeAccess::open({"0.0.0.0:0", path, false});
  REQUIRE(access.ok());

  struct stat facts {};

  REQUIRE(stat(path.c_str(), &facts) == 0);
  REQUIRE((facts.st_mode & 0777) == 0600);
  const std::string token = token_in(path);
  REQUIRE(token.size() == 26);
  REQUIRE((*access)->admits(token));
  for (const std::string& other : {std::string(), token + "a", token.substr(1), "A" + token}) {
    REQUIRE_FALSE((*access)->admits(other));
  }
  REQUIRE((*access)->reach() == HttpReach::kAnyName);
  const auto again = ServeAccess::open({"0.0.0.0:0", path, false});
  REQUIRE((*again)->admits(token));
}

TEST_CASE("serve access: another token holds once it is read, and a bad file changes nothing",
          "[serve]") {
  const TempFolder folder;
  const std::string path = folder.file("token");
  const auto write = [&](const std::string& text) {
    write_file(path, text);
    REQUIRE(chmod(path.c_str(), 0600) == 0);
  };
  write("a-token-of-ones-own\n");
  const auto access = ServeAccess::open({"0.0.0.0:0", path, false});
  REQUIRE(access.ok());
  write("another-token-of-ones-own");
  REQUIRE((*access)->admits("a-token-of-ones-own"));
  REQUIRE((*access)->reload().ok());
  REQUIRE_FALSE((*access)->admits("a-token-of-ones-own"));
  for (const std::string& bad : {std::string("short"), std::string("two words are no token"),
                                 std::string("\n"), std::string(300, 'x')}) {
    write(bad);
    REQUIRE_FALSE((*access)->reload().ok());
    REQUIRE_FALSE(ServeAccess::open({"0.0.0.0:0", path, false}).ok());
    REQUIRE((*access)->admits("another-token-of-ones-own"));
  }
  write("another-token-of-ones-own");
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  REQUIRE_THAT(ServeAccess::open({"0.0.0.0:0", path, false}).error().message, Contains("others"));
}

TEST_CASE(
    "serve access: without a token everybody is admitted, under names only where the flags allow "
    "it",
    "[serve]") {
  const auto here = ServeAccess::open({"127.0.0.1:0", "", false});
  const auto everywhere = ServeAccess::open({"0.0.0.0:0", "", true});
  REQUIRE((*here)->admits(""));
  REQUIRE((*here)->reach() == HttpReach::kThisMachine);
  REQUIRE((*everywhere)->admits(""));
  REQUIRE((*everywhere)->reach() == HttpReach::kAnyName);
}

}  // namespace gleaner
