#include "master/shell/disk_gauge.hpp"

#include <asio/post.hpp>
#include <chrono>
#include <utility>

namespace gleaner {
namespace {

constexpr std::chrono::seconds kPeriod{1};

}  // namespace

DiskGauge::DiskGauge(asio::io_context& io, const HeldFolder& folder,
                     std::function<void(const Error&)> on_gone)
    : io_(io), folder_(folder), on_gone_(std::move(on_gone)) {}

void DiskGauge::measure(Instant now) {
  if (measured_ && now - *measured_ < kPeriod) return;
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

}  // namespace gleaner
