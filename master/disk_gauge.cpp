#include "master/disk_gauge.hpp"

#include <asio/post.hpp>
#include <chrono>
#include <utility>

#include "storage/engine/store_folder.hpp"

namespace gleaner {
namespace {

constexpr std::chrono::seconds kPeriod{1};

}  // namespace

DiskGauge::DiskGauge(asio::io_context& io, std::string folder)
    : io_(io), folder_(std::move(folder)) {}

void DiskGauge::measure(Instant now) {
  if (measured_ && now - *measured_ < kPeriod) return;
  measured_ = now;
  asio::post(thread_, [this] {
    const std::uint64_t used = folder_bytes(folder_);
    const std::uint64_t free = gleaner::free_bytes(folder_).value_or(0);
    asio::post(io_, [this, used, free] {
      store_bytes_ = used;
      free_bytes_ = free;
    });
  });
}

}  // namespace gleaner
