#include "master/room_wait.hpp"

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <chrono>

#include "storage/engine/store_folder.hpp"

namespace gleaner {
namespace {

constexpr std::chrono::seconds kRoomPoll{1};
// The least room that is asked for when the reserve did not suffice.
constexpr std::uint64_t kRoomBytesMin = std::uint64_t{64} << 20;

}  // namespace

Pause::Pause() {
  signals_.async_wait([this](asio::error_code error, int) { is_stopped_ = !error; });
}

bool Pause::wait_for_room(const std::string& path, std::uint64_t bytes,
                          const std::function<bool()>& on_second) {
  do {
    if (!on_second()) return false;
    asio::steady_timer timer(io_, kRoomPoll);
    bool is_over = false;
    timer.async_wait([&](asio::error_code) { is_over = true; });
    while (!is_over && !is_stopped_) io_.run_one();
  } while (!is_stopped_ &&
           (free_bytes(path).value_or(bytes) < bytes || !can_take_room(path, bytes)));
  return !is_stopped_;
}

bool Pause::is_stopped() {
  io_.poll();
  return is_stopped_;
}

std::uint64_t RoomWanted::after(const Error& error, RoundIndex checkpoint) {
  if (error.code == ErrorCode::kStoreUnsure) {
    // Without a new checkpoint since, the room that was free then does not suffice.
    bytes_ = unsure_at_ == checkpoint ? std::max(2 * bytes_, kRoomBytesMin) : reserve_;
    unsure_at_ = checkpoint;
  }
  return bytes_;
}

}  // namespace gleaner
