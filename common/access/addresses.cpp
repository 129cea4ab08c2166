#include "common/access/addresses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/access/key_pair.hpp"
#include "common/bytes.hpp"

namespace gleaner {
namespace {

Error unusable(std::string_view why) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the address is not usable: {}; paste the whole line that the master "
                           "prints, gleaner://HOST:PORT/KEY.INVITE",
                           why)};
}

constexpr std::string_view kAround = " \t\r\n'\"`<>";

char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::size_t find_address_scheme(std::string_view text) {
  // Clang 14 does not compile std::ranges::search.
  const auto found =
      std::search(text.begin(), text.end(), kAddressScheme.begin(), kAddressScheme.end(),
                  [](char a, char b) { return small(a) == b; });
  return found == text.end() ? std::string_view::npos
                             : static_cast<std::size_t>(found - text.begin());
}

std::string address_in(std::string_view pasted) {
  const std::size_t scheme = find_address_scheme(pasted);
  const bool has_scheme = scheme != std::string_view::npos;
  const std::size_t begin = has_scheme ? scheme : pasted.find_first_not_of(kAround);
  if (begin == std::string_view::npos) return {};
  pasted.remove_prefix(begin);
  if (!has_scheme) return std::string(pasted.substr(0, pasted.find_last_not_of(kAround) + 1));
  std::string line(pasted.substr(0, pasted.find_first_of(kAround)));
  line.erase(line.find_last_not_of("./,;)") + 1);
  std::ranges::transform(line, line.begin(), small);
  return line;
}

Result<MasterAddress> parse_master_address(std::string_view text) {
  if (text.starts_with("http://") || text.starts_with("https://")) {
    return unusable("it is that of a page");
  }
  if (!text.starts_with(kAddressScheme)) {
    const auto where = parse_host_port(text);
    if (!where) return where.error();
    if (where->port == 0) return unusable("port 0 cannot be connected to");
    return MasterAddress{*where, std::nullopt};
  }
  text.remove_prefix(kAddressScheme.size());
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return unusable("the master's key is missing");
  const auto where = parse_host_port(text.substr(0, slash));
  if (!where) return where.error();
  if (where->port == 0) return unusable("port 0 cannot be connected to");
  const std::string_view secure = text.substr(slash + 1);
  const std::size_t dot = secure.find('.');
  if (dot == std::string_view::npos) return unusable("the invite is missing");
  const auto key = parse_key_id(secure.substr(0, dot));
  if (!key) return unusable(fmt::format("the key has not its {} characters", kKeyIdTextSize));
  const auto invite = parse_invite_key(secure.substr(dot + 1));
  if (!invite)
    return unusable(fmt::format("the invite has not its {} characters", kInviteTextSize));
  return MasterAddress{*where, MasterAddress::Secure{*key, *invite}};
}

std::string to_text(const MasterAddress& address) {
  const std::string where = to_text(address.where);
  if (!address.secure) return where;
  return fmt::format("{}{}/{}.{}", kAddressScheme, where, to_text(address.secure->key),
                     to_text(address.secure->invite));
}

Result<void> check_secrecy(const MasterAddress& address, bool is_insecure) {
  if (address.secure && is_insecure) {
    return Error{ErrorCode::kInvalidArgument,
                 "an address with a key is that of a master that encrypts: leave --insecure out"};
  }
  if (!address.secure && !is_insecure) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the address {} has no key that identifies the master: paste the "
                    "whole line that the master prints, gleaner://HOST:PORT/KEY.INVITE; or give "
                    "--insecure to both ends, which encrypts nothing",
                    to_text(address.where))};
  }
  return {};
}

InviteSecret make_page_key() {
  const std::uint64_t bits[] = {random_bits(), random_bits()};
  InviteSecret key{};
  static_assert(sizeof(bits) == sizeof(key));
  std::memcpy(key.data(), bits, sizeof(bits));
  return key;
}

std::string page_key_text(const InviteSecret& key) {
  return to_base32({key.data(), key.size()});
}

bool is_page_key(std::string_view text, const InviteSecret& key) {
  const std::optional<Bytes> bytes = from_base32(text, key.size());
  if (!bytes) return false;
  InviteSecret given{};
  std::copy(bytes->begin(), bytes->end(), given.begin());
  return is_same_secret(given, key);
}

void hide_secrets(std::span<char* const> arguments) {
  for (char* const argument : arguments) {
    const std::string_view text(argument);
    if (const std::size_t hash = text.find('#'); text.starts_with("http") && hash < text.size()) {
      std::fill(argument + hash + 1, argument + text.size(), 'x');
      continue;
    }
    const std::size_t begin = find_address_scheme(text);
    if (begin == std::string_view::npos) continue;
    const std::size_t key = text.find('/', begin + kAddressScheme.size());
    const std::size_t invite = key == std::string_view::npos ? key : text.find('.', key);
    if (invite == std::string_view::npos) continue;
    std::fill(argument + invite + 1, argument + text.size(), 'x');
  }
}

}  // namespace gleaner
