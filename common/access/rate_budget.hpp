// How often something may happen, in all and for each address or invite that it comes from: a
// number at once, after which a number per second comes back. Remembers only those that have spent
// of late. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>

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

  // Takes one, for `address`; false when nothing is left for it or for all.
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

  // Addresses with a full purse; if there are none, all, so that the memory has a bound.
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

}  // namespace gleaner
