// The bytes of a store's files and of free space on its disk, at most a second old, and whether the
// store's folder is in its place. A thread of its own measures, so that the I/O thread never waits
// for a disk. Used from the I/O thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "common/time.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {

class DiskGauge {
 public:
  // `io` runs the thread's posts, and `on_gone` when the folder is not in its place. `io` and
  // `folder` outlive the gauge.
  DiskGauge(asio::io_context& io, const HeldFolder& folder,
            std::function<void(const Error&)> on_gone)
      : io_(io), folder_(folder), on_gone_(std::move(on_gone)) {}

  // Starts a measurement unless the last one was less than a second ago.
  void measure(Instant now) {
    if (measured_ && now - *measured_ < Millis(1000)) return;
    measured_ = now;
    asio::post(thread_, [this] {
      const std::uint64_t used = folder_bytes(folder_.reach());
      const std::uint64_t free = gleaner::free_bytes(folder_.reach()).value_or(0);
      asio::post(io_, [this, used, free, in_place = folder_.check()] {
        if (!in_place) on_gone_(in_place.error());
        store_bytes_ = used;
        free_bytes_ = free;
      });
    });
  }

  [[nodiscard]] std::uint64_t store_bytes() const { return store_bytes_; }

  [[nodiscard]] std::uint64_t free_bytes() const { return free_bytes_; }

 private:
  asio::io_context& io_;
  const HeldFolder& folder_;
  const std::function<void(const Error&)> on_gone_;
  std::uint64_t store_bytes_ = 0;
  std::uint64_t free_bytes_ = 0;
  std::optional<Instant> measured_;
  asio::thread_pool thread_{1};  // ends before what it reads
};

}  // namespace gleaner
