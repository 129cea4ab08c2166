#include "tools/admit/master_query.hpp"

#include <catch2/catch.hpp>

#include "master/door/access_file.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

RunningMaster note_of(MasterPort port, const std::string& address = "10.0.0.5:7070") {
  RunningMaster note{address, 3};
  note.port = port;
  return note;
}

}  // namespace

TEST_CASE("master query: a page's address is taken as a browser takes it", "[access]") {
  const PageAddress bare{{"127.0.0.1", 8080}, ""};
  const PageAddress keyed{{"127.0.0.1", 8080}, "Abc123"};
  CHECK(parse_page_address("http://127.0.0.1:8080") == bare);
  CHECK(parse_page_address("http://127.0.0.1:8080/") == bare);
  CHECK(parse_page_address("http://127.0.0.1:8080/#Abc123") == keyed);
  CHECK(parse_page_address("http://127.0.0.1:8080/#KEY.Abc123") ==
        keyed);  // an invite's whole line
  for (const char* const wrong :
       {"https://127.0.0.1:8080", "127.0.0.1:8080", "http://127.0.0.1:8080/#a b", "http://", ""}) {
    CHECK_FALSE(parse_page_address(wrong));
  }
}

TEST_CASE("master query: a store's owner asks by the master's own key", "[access]") {
  const test::TemporaryFolder store;
  CHECK_FALSE(owner_address(store.path(), note_of(MasterPort::kEncrypted)).ok());  // no key yet
  const auto key = KeyPair::load_or_make(master_key_path(store.path()));
  REQUIRE(key.ok());
  const auto address =
      test::require_value(owner_address(store.path(), note_of(MasterPort::kEncrypted)));
  CHECK(to_text(address.where) == "10.0.0.5:7070");
  REQUIRE(address.secure);
  CHECK(address.secure->key == key->id());
  const auto plain = test::require_value(owner_address(store.path(), note_of(MasterPort::kPlain)));
  CHECK_FALSE(plain.secure);
  test::check_error(owner_address(store.path(), note_of(MasterPort::kEncrypted, "nowhere")),
                    ErrorCode::kCorrupt, "note of its master");
}

TEST_CASE("master query: a master that cannot be asked has an exit status of its own", "[access]") {
  CHECK(exit_status_of_asking({}) == 0);
  for (const ErrorCode code :
       {ErrorCode::kIo, ErrorCode::kProtocol, ErrorCode::kInvite, ErrorCode::kIdentity}) {
    CHECK(exit_status_of_asking(Error{code, "no"}) == 5);
  }
  CHECK(exit_status_of_asking(Error{ErrorCode::kInvalidArgument, "no"}) == 2);
  CHECK(exit_status_of_asking(Error{ErrorCode::kCorrupt, "no"}) == 4);
}

}  // namespace gleaner
