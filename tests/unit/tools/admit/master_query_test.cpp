#include "tools/admit/master_query.hpp"

#include <catch2/catch.hpp>

#include "master/door/access_file.hpp"
#include "storage/engine/store_folder.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

RunningMaster note_of(bool is_plain, const std::string& address = "10.0.0.5:7070") {
  return {address, 3, is_plain};
}

}  // namespace

TEST_CASE("master query: a store's owner asks by the master's own key", "[access]") {
  const test::TemporaryFolder store;
  CHECK_FALSE(owner_address(store.path(), note_of(false)).ok());  // no key yet
  const auto key = KeyPair::load_or_make(master_key_path(store.path()));
  REQUIRE(key.ok());
  const auto address = test::require_value(owner_address(store.path(), note_of(false)));
  CHECK(to_text(address.where) == "10.0.0.5:7070");
  REQUIRE(address.secure);
  CHECK(address.secure->key == key->id());
  const auto plain = test::require_value(owner_address(store.path(), note_of(true)));
  CHECK_FALSE(plain.secure);
  test::check_error(owner_address(store.path(), note_of(false, "nowhere")), ErrorCode::kCorrupt,
                    "note of its master");
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
