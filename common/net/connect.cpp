#include "common/net/connect.hpp"

#include <fmt/format.h>

#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/net/address_race.hpp"
#include "common/net/proxy.hpp"
#include "common/net/task_group.hpp"

namespace gleaner {
namespace {

using asio::ip::tcp;

Error failed(const HostPort& target, std::string what) {
  return Error{ErrorCode::kIo, fmt::format("{}: {}", to_text(target), what)};
}

std::string no_answer(Millis time_max) {
  return fmt::format("no answer within {} ms", time_max.count());
}

// The result of a lookup. A lookup cannot be interrupted: it is awaited with a timer and, after a
// timeout, left to end by itself.
struct Lookup {
  explicit Lookup(const asio::any_io_executor& executor) : resolver(executor), done(executor) {}

  tcp::resolver resolver;
  asio::steady_timer done;  // cancelled when the answer has come
  bool has_answer = false;
  asio::error_code error;
  std::vector<tcp::endpoint> endpoints;
};

asio::awaitable<Result<std::vector<tcp::endpoint>>> look_up(HostPort target,
                                                            asio::steady_timer::time_point deadline,
                                                            Millis time_max) {
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  const auto lookup = std::make_shared<Lookup>(executor);
  lookup->done.expires_at(deadline);
  lookup->resolver.async_resolve(
      target.host, std::to_string(target.port), tcp::resolver::numeric_service,
      [lookup](const asio::error_code& error, const tcp::resolver::results_type& results) {
        lookup->has_answer = true;
        lookup->error = error;
        for (const auto& result : results) lookup->endpoints.push_back(result.endpoint());
        lookup->done.cancel();
      });
  const WaitOutcome outcome = co_await lookup->done.async_wait(kAsTuple);
  static_cast<void>(outcome);
  if (!lookup->has_answer) {
    co_return failed(target,
                     fmt::format("the name was not resolved within {} ms", time_max.count()));
  }
  if (lookup->error) {
    co_return failed(target, fmt::format("cannot resolve the name: {}", lookup->error.message()));
  }
  co_return std::move(lookup->endpoints);
}

[[gnu::noinline]] asio::awaitable<Result<tcp::socket>> connect_straight(
    HostPort target, asio::steady_timer::time_point deadline, Millis time_max) {
  const Result<std::vector<tcp::endpoint>> endpoints = co_await look_up(target, deadline, time_max);
  if (!endpoints) co_return endpoints.error();
  AddressRace race = co_await race_addresses(*endpoints, deadline);
  if (race.winner) co_return std::move(*race.winner);
  co_return failed(target, race.last_error.empty() ? no_answer(time_max) : race.last_error);
}

const char* variable(const char* name) {
  return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any
}

}  // namespace

asio::awaitable<Result<tcp::socket>> resolve_and_connect(HostPort target, Millis time_max) {
  if (target.port == 0) co_return failed(target, "port 0 cannot be connected to");
  const auto deadline = asio::steady_timer::clock_type::now() + time_max;
  const Result<std::optional<Proxy>> proxy = proxy_for(target, &variable);
  if (!proxy) co_return proxy.error();
  const HostPort first = *proxy ? (*proxy)->where : target;
  Result<tcp::socket> socket = co_await connect_straight(first, deadline, time_max);
  if (!*proxy) co_return std::move(socket);
  if (!socket) {
    co_return failed(target, "its proxy cannot be reached: " + socket.error().message);
  }
  const asio::any_io_executor executor = co_await asio::this_coro::executor;
  // The timer's handler may run after this coroutine.
  const auto shared = std::make_shared<tcp::socket>(std::move(*socket));
  asio::steady_timer late(executor, deadline);
  late.async_wait([shared](const asio::error_code& error) {
    asio::error_code ignored;
    if (!error) shared->cancel(ignored);
  });
  const Result<void> connected = co_await connect_through(*shared, **proxy, target);
  if (!connected) co_return connected.error();
  co_return std::move(*shared);
}

Result<tcp::acceptor> listen(const asio::any_io_executor& executor, const HostPort& address) {
  asio::error_code error;
  tcp::resolver resolver(executor);
  const auto results =
      resolver.resolve(address.host, std::to_string(address.port),
                       tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || results.empty()) {
    return failed(address, fmt::format("cannot resolve the name: {}", error.message()));
  }
  const tcp::endpoint endpoint = results.begin()->endpoint();
  tcp::acceptor acceptor(executor);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error == asio::error::address_in_use) {
    return Error{ErrorCode::kBusy,
                 fmt::format("{}: another program listens there already (a master that still runs?)"
                             "; stop it, or choose another port",
                             to_text(address))};
  }
  if (error) return failed(address, fmt::format("cannot listen: {}", error.message()));
  return acceptor;
}

std::string remote_text(const tcp::socket& socket) {
  asio::error_code error;
  const tcp::endpoint endpoint = socket.remote_endpoint(error);
  return error ? "unknown" : to_text(endpoint);
}

std::string to_text(const tcp::endpoint& endpoint) {
  return to_text(HostPort{endpoint.address().to_string(), endpoint.port()});
}

}  // namespace gleaner
