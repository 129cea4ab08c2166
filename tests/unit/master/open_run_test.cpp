#include <catch2/catch.hpp>

#include "master/master_run.hpp"
#include "master/room_wait.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kReserve = std::uint64_t{100} << 20;
const Error kFull{ErrorCode::kDiskFull, "no room"};
const Error kUnsure{ErrorCode::kStoreUnsure, "no room within a write"};

}  // namespace

TEST_CASE("room wanted: a disk that was full before a write needs the reserve again", "[master]") {
  RoomWanted room(kReserve);
  for (RoundIndex checkpoint : {0U, 0U, 3U}) CHECK(room.after(kFull, checkpoint) == kReserve);
}

TEST_CASE("room wanted: it doubles while room runs out in the write of one checkpoint",
          "[master]") {
  RoomWanted room(kReserve);
  CHECK(room.after(kUnsure, 5) == kReserve);
  CHECK(room.after(kUnsure, 5) == 2 * kReserve);
  CHECK(room.after(kFull, 5) == 2 * kReserve);
  CHECK(room.after(kUnsure, 5) == 4 * kReserve);
  CHECK(room.after(kUnsure, 6) == kReserve);
}

TEST_CASE("room wanted: without a reserve it still grows", "[master]") {
  RoomWanted room(0);
  CHECK(room.after(kUnsure, 0) == 0);
  CHECK(room.after(kUnsure, 0) == std::uint64_t{64} << 20);
  CHECK(room.after(kUnsure, 0) == std::uint64_t{128} << 20);
}

}  // namespace gleaner
