// Connects to the first of several addresses that answers (RFC 8305).
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <optional>
#include <string>
#include <vector>

namespace gleaner {

struct AddressRace {
  std::optional<asio::ip::tcp::socket> winner;
  std::string last_error;  // empty: an address had not answered at the deadline
};

// Attempts overlap: an address that is silent delays the next one by a quarter of a second. On the
// calling coroutine's executor, one thread.
asio::awaitable<AddressRace> race_addresses(std::vector<asio::ip::tcp::endpoint> addresses,
                                            asio::steady_timer::time_point deadline);

}  // namespace gleaner
