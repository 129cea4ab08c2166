// Rate limits of events, in total and per address or invite: a number at once, and a number per
// second that comes back. Only recent spenders are remembered. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/counter_random.hpp"
#include "common/result.hpp"
#include "common/time.hpp"

namespace gleaner {

class RateBudget {
 public:
  struct Rate {
    double at_once = 1;
    double per_second = 1;
  };

  RateBudget(Rate all, Rate per_address)
      : all_rate_(all), rate_(per_address), all_{all.at_once, {}} {}

  // Spends one unit for `address`; false when the address or the total has none left.
  bool spend(const std::string& address, Instant now) {
    refill(all_, all_rate_, now);
    if (spenders_.size() >= kAddressesMax) forget_the_idle(now);
    Purse& purse = spenders_.try_emplace(address, Purse{rate_.at_once, now}).first->second;
    refill(purse, rate_, now);
    if (all_.left < 1 || purse.left < 1) return false;
    --all_.left;
    --purse.left;
    return true;
  }

  [[nodiscard]] std::size_t addresses() const { return spenders_.size(); }

 private:
  static constexpr std::size_t kAddressesMax = 4096;

  struct Purse {
    double left = 0;
    Instant at{};
  };

  static void refill(Purse& purse, Rate rate, Instant now) {
    const double seconds = static_cast<double>((now - purse.at).count()) / 1e6;
    purse.left = std::min(rate.at_once, purse.left + seconds * rate.per_second);
    purse.at = now;
  }

  // Forgets addresses that may spend at_once again; if there are none, all, to bound the memory.
  void forget_the_idle(Instant now) {
    for (auto& [address, purse] : spenders_) refill(purse, rate_, now);
    std::erase_if(spenders_, [&](const auto& entry) { return entry.second.left >= rate_.at_once; });
    if (spenders_.size() >= kAddressesMax) spenders_.clear();
  }

  Rate all_rate_;
  Rate rate_;
  Purse all_;
  std::map<std::string, Purse> spenders_;
};

// The delay before another attempt: exponential with jitter, so that a crowd of volunteers does not
// return at the same time. Pure: randomness comes from the seed.
class Backoff {
 public:
  // Delays double from `first` to `longest`; each is random in the upper half of its range.
  Backoff(Millis first, Millis longest, std::uint64_t seed)
      : first_(first), longest_(longest), random_(seed, Purpose::kBackoff) {}

  Millis next() {
    const std::int64_t ceiling =
        std::min(first_.count() << std::min(attempts_, 20u), longest_.count());
    ++attempts_;
    const std::int64_t floor = ceiling / 2;
    const auto jitter = static_cast<std::int64_t>(
        random_.next_below(static_cast<std::uint64_t>(ceiling - floor + 1)));
    return Millis(floor + jitter);
  }

  // Call after a success.
  void reset() { attempts_ = 0; }

  [[nodiscard]] std::uint32_t attempts() const { return attempts_; }

 private:
  Millis first_;
  Millis longest_;
  Rng random_;
  std::uint32_t attempts_ = 0;
};

// Limits a byte rate, on average and to the frame: a frame waits until the time that earlier frames
// cost has passed. Sockets that share a pacer stay below the rate together. One thread.
class Pacer {
 public:
  // 0: no limit.
  explicit Pacer(std::uint64_t bytes_per_second) : rate_(bytes_per_second) {}

  // Unset: no limit.
  void limit(std::optional<double> megabits_per_second) {
    rate_ = static_cast<std::uint64_t>(megabits_per_second.value_or(0) * 125'000);
    paid_ = {};
  }

  // When the next frame may begin; a past time means at once.
  [[nodiscard]] Instant ready() const { return paid_; }

  // `bytes` begin to pass at `now`. Idle time is not saved up.
  void spend(std::size_t bytes, Instant now) {
    if (rate_ == 0) return;
    const auto micros = static_cast<std::int64_t>(bytes * 1'000'000 / rate_);
    paid_ = std::max(paid_, now) + Micros(micros);
  }

 private:
  std::uint64_t rate_;
  Instant paid_{};
};

// Null (no limit) without a value.
inline std::shared_ptr<Pacer> make_pacer(std::optional<double> megabits_per_second) {
  if (!megabits_per_second) return nullptr;
  return std::make_shared<Pacer>(static_cast<std::uint64_t>(*megabits_per_second * 125'000));
}

// The growth rate of a count over the last seconds. One thread.
class RateWindow {
 public:
  explicit RateWindow(Millis window) : window_(window) {}

  // Adds the count at `now`; time never goes back. A count that falls begins again.
  void add(Instant now, std::uint64_t count) {
    if (!samples_.empty() && count < samples_.back().count) samples_.clear();
    samples_.push_back({now, count});
    while (samples_.size() > 2 && now - samples_[1].at >= window_) samples_.pop_front();
  }

  // Nullopt until a second has been observed.
  [[nodiscard]] std::optional<double> per_second() const {
    if (samples_.size() < 2) return std::nullopt;
    const Sample& first = samples_.front();
    const Sample& last = samples_.back();
    const double seconds = static_cast<double>((last.at - first.at).count()) / 1e6;
    if (seconds < 1) return std::nullopt;
    return static_cast<double>(last.count - first.count) / seconds;
  }

 private:
  struct Sample {
    Instant at;
    std::uint64_t count = 0;
  };

  const Micros window_;
  std::deque<Sample> samples_;
};

}  // namespace gleaner
