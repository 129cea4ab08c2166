// The sizes of a store's files and of what is free on its disk, at most a second old, and whether
// its folder is in its place. A thread of its own measures them, so that the I/O thread does not
// wait for a disk. Used from the I/O thread.
#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/time.hpp"
#include "storage/engine/store_folder.hpp"

namespace gleaner {

class DiskGauge {
 public:
  // `io` runs what the thread posts, and `on_gone` when the folder is not in its place; both and
  // `folder` outlive it.
  DiskGauge(asio::io_context& io, const HeldFolder& folder,
            std::function<void(const Error&)> on_gone);

  // Measures again, unless that was done less than a second ago.
  void measure(Instant now);

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
