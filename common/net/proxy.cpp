#include "common/net/proxy.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/ip/address.hpp>
#include <asio/ip/network_v4.hpp>
#include <asio/ip/network_v6.hpp>
#include <asio/read.hpp>
#include <asio/read_until.hpp>
#include <asio/write.hpp>
#include <cctype>
#include <sstream>

#include "common/net/task_group.hpp"

namespace gleaner {
namespace {

using asio::ip::tcp;

constexpr std::size_t kHeadBytesMax = 16384;

// Whether `word` is a network, as in 10.0.0.0/8, that contains the address `host`.
bool contains(const std::string& word, const std::string& host) {
  asio::error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error || word.find('/') == std::string::npos) return false;
  if (address.is_v4()) {
    const auto network = asio::ip::make_network_v4(word, error);
    return !error && asio::ip::network_v4(address.to_v4(), network.prefix_length()).canonical() ==
                         network.canonical();
  }
  const auto network = asio::ip::make_network_v6(word, error);
  return !error && asio::ip::network_v6(address.to_v6(), network.prefix_length()).canonical() ==
                       network.canonical();
}

// "localhost,.example.org,10.0.0.5,10.1.0.0/16,*": names with all below them, addresses and
// networks.
bool is_exempt(const std::string& host, std::string list) {
  std::ranges::replace(list, ',', ' ');
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    if (word == "*" || word == host || contains(word, host)) return true;
    const std::size_t begin = std::min(word.find_first_not_of("*."), word.size());
    const std::string suffix = word.substr(begin);
    if (!suffix.empty() && (host == suffix || host.ends_with("." + suffix))) return true;
  }
  return false;
}

std::string base64(const std::string& text) {
  std::string coded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()),
                                   static_cast<int>(text.size()));
  return coded.substr(0, static_cast<std::size_t>(size));
}

// Sends `request` and reads `count` bytes; empty when that fails.
asio::awaitable<std::string> exchange(tcp::socket& socket, std::string request, std::size_t count) {
  const auto sent = co_await asio::async_write(socket, asio::buffer(request), kAsTuple);
  std::string reply(count, '\0');
  if (std::get<0>(sent)) co_return "";
  const auto read = co_await asio::async_read(socket, asio::buffer(reply), kAsTuple);
  co_return std::get<0>(read) ? "" : reply;
}

// USER:PASSWORD as RFC 1929 sends them; a longer part is cut.
std::string socks_login(const std::string& user) {
  std::string text("\1");
  const std::size_t colon = std::min(user.find(':'), user.size());
  for (const std::string& part :
       {user.substr(0, colon), user.substr(std::min(colon + 1, user.size()))}) {
    const std::string whole = part.substr(0, 255);
    text += static_cast<char>(whole.size()) + whole;
  }
  return text;
}

asio::awaitable<std::string> ask_socks(tcp::socket& socket, Proxy proxy, HostPort target) {
  std::string text(proxy.user.empty() ? "\5\1\0" : "\5\1\2", 3);  // without a user, or with one
  std::string reply = co_await exchange(socket, text, 2);
  if (reply.size() < 2 || reply[0] != 5) co_return "it is no SOCKS5 proxy";
  if (reply[1] != text[2]) {
    co_return proxy.user.empty() ? "it wants a user: give socks5://USER:PASSWORD@HOST:PORT"
                                 : "it takes no user with a password";
  }
  if (!proxy.user.empty()) {
    text = socks_login(proxy.user);
    reply = co_await exchange(socket, text, 2);
    if (reply.size() < 2 || reply[1] != 0) co_return "it refuses the user";
  }
  // The proxy looks the name up; it reads an address in this form too.
  text = std::string("\5\1\0\3", 4) + static_cast<char>(target.host.size()) + target.host +
         static_cast<char>(target.port >> 8) + static_cast<char>(target.port & 255);
  reply = co_await exchange(socket, text, 5);
  if (reply.size() < 5 || reply[1] != 0) {
    co_return fmt::format("its answer is {}", reply.size() < 5 ? -1 : int{reply[1]});
  }
  const auto length = static_cast<std::uint8_t>(reply[4]);
  const std::size_t rest = reply[3] == 1 ? 5 : reply[3] == 4 ? 17 : length + 2u;
  reply = co_await exchange(socket, "", rest);
  co_return reply.size() == rest ? "" : "it hung up";
}

asio::awaitable<std::string> ask_http(tcp::socket& socket, Proxy proxy, HostPort target) {
  const std::string where = to_text(target);
  std::string text = fmt::format("CONNECT {0} HTTP/1.1\r\nHost: {0}\r\n", where);
  if (!proxy.user.empty()) text += "Proxy-Authorization: Basic " + base64(proxy.user) + "\r\n";
  text += "\r\n";
  const auto sent = co_await asio::async_write(socket, asio::buffer(text), kAsTuple);
  std::string head;
  if (std::get<0>(sent)) co_return std::get<0>(sent).message();
  auto buffer = asio::dynamic_buffer(head, kHeadBytesMax);
  const auto read = co_await asio::async_read_until(socket, buffer, "\r\n\r\n", kAsTuple);
  if (std::get<0>(read)) co_return std::get<0>(read).message();
  const bool is_open = head.starts_with("HTTP/1.") && head.substr(8, 2) == " 2";
  co_return is_open ? "" : head.substr(0, head.find('\r'));
}

}  // namespace

Result<std::optional<Proxy>> proxy_for(const HostPort& target,
                                       const std::function<const char*(const char*)>& environment) {
  const auto value = [&](const char* name) {
    std::string upper(name);
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    const char* text = environment(name);
    if (text == nullptr || *text == '\0') text = environment(upper.c_str());
    return std::string(text == nullptr ? "" : text);
  };
  std::string name = "https_proxy";
  std::string text = value(name.c_str());
  if (text.empty()) text = value((name = "all_proxy").c_str());
  if (text.empty() || is_loopback(target.host) || is_exempt(target.host, value("no_proxy"))) {
    return std::optional<Proxy>();
  }
  const std::size_t colon = text.find("://");
  const std::string scheme = colon == std::string::npos ? "http" : text.substr(0, colon);
  std::string rest = colon == std::string::npos ? text : text.substr(colon + 3);
  rest = rest.substr(0, rest.find('/'));
  Proxy proxy;
  proxy.is_socks = scheme == "socks5" || scheme == "socks5h" || scheme == "socks";
  const std::size_t at = rest.rfind('@');
  if (at != std::string::npos) proxy.user = rest.substr(0, at);
  const auto where = parse_host(at == std::string::npos ? rest : rest.substr(at + 1));
  if (!where || (scheme != "http" && !proxy.is_socks)) {
    return Error{ErrorCode::kInvalidArgument,
                 name +
                     " names no proxy that can be used: give http://HOST:PORT or "
                     "socks5://HOST:PORT"};
  }
  proxy.where = *where;
  if (proxy.where.port == 0) proxy.where.port = proxy.is_socks ? 1080 : 3128;
  return std::optional(proxy);
}

asio::awaitable<Result<void>> connect_through(tcp::socket& socket, Proxy proxy, HostPort target) {
  std::string why;
  if (proxy.is_socks) {
    why = co_await ask_socks(socket, proxy, target);
  } else {
    why = co_await ask_http(socket, proxy, target);
  }
  if (why.empty()) co_return Result<void>();
  co_return Error{ErrorCode::kIo, fmt::format("{}: the proxy {} does not connect: {}",
                                              to_text(target), to_text(proxy.where), why)};
}

}  // namespace gleaner
