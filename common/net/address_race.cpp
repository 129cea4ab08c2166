#include "common/net/address_race.hpp"

#include <algorithm>
#include <asio/any_io_executor.hpp>
#include <asio/this_coro.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "common/net/task_group.hpp"

namespace gleaner {
namespace {

using asio::ip::tcp;

// RFC 8305: an address that does not answer must not keep the others waiting.
constexpr std::chrono::milliseconds kNextAddressAfter{250};

// The attempts at all addresses of a name. The first connection wins and ends the others.
struct Race {
  explicit Race(const asio::any_io_executor& of) : executor(of), news(of) {}

  asio::any_io_executor executor;
  asio::steady_timer news;  // cancelled when an attempt ends
  std::vector<std::shared_ptr<tcp::socket>> open;
  std::optional<tcp::socket> winner;
  std::string last_error = "the name has no address";
};

void begin_attempt(const std::shared_ptr<Race>& race, const tcp::endpoint& endpoint) {
  const auto socket = race->open.emplace_back(std::make_shared<tcp::socket>(race->executor));
  socket->async_connect(endpoint, [race, socket](const asio::error_code& error) {
    std::erase(race->open, socket);
    if (!error && !race->winner) race->winner = std::move(*socket);
    if (error && error != asio::error::operation_aborted) race->last_error = error.message();
    race->news.cancel();
  });
}

// Addresses of the two families in turn, in the resolver's order otherwise.
std::vector<tcp::endpoint> in_turn(const std::vector<tcp::endpoint>& endpoints) {
  std::vector<std::vector<tcp::endpoint>> ranks(endpoints.size());
  std::size_t count[2] = {0, 0};
  for (const tcp::endpoint& endpoint : endpoints) {
    ranks[count[endpoint.protocol() == endpoints.front().protocol() ? 0 : 1]++].push_back(endpoint);
  }
  std::vector<tcp::endpoint> order;
  for (const auto& rank : ranks) order.insert(order.end(), rank.begin(), rank.end());
  return order;
}

}  // namespace

asio::awaitable<AddressRace> race_addresses(std::vector<tcp::endpoint> addresses,
                                            asio::steady_timer::time_point deadline) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto race = std::make_shared<Race>(executor);
  const std::vector<tcp::endpoint> order = in_turn(addresses);
  std::size_t begun = 0;
  auto now = asio::steady_timer::clock_type::now();
  auto next_at = now;
  while (!race->winner && now < deadline && (begun < order.size() || !race->open.empty())) {
    if (begun < order.size() && (race->open.empty() || now >= next_at)) {
      begin_attempt(race, order[begun++]);
      next_at = now + kNextAddressAfter;
    }
    race->news.expires_at(begun < order.size() ? std::min(next_at, deadline) : deadline);
    const WaitOutcome outcome = co_await race->news.async_wait(kAsTuple);
    static_cast<void>(outcome);
    now = asio::steady_timer::clock_type::now();
  }
  AddressRace result;
  if (race->open.empty() || race->winner) result.last_error = race->last_error;
  result.winner = std::move(race->winner);
  asio::error_code ignored;
  for (const auto& socket : race->open) socket->cancel(ignored);
  co_return result;
}

}  // namespace gleaner
