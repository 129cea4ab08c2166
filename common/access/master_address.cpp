#include "common/access/master_address.hpp"

#include <fmt/format.h>

namespace gleaner {
namespace {

Error unusable(std::string_view why) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("the address is not usable: {}; paste the whole line that the master "
                           "prints, gleaner://HOST:PORT/KEY.INVITE",
                           why)};
}

}  // namespace

Result<MasterAddress> parse_master_address(std::string_view text) {
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
        fmt::format("the address {} has no key, so nobody could know who answers there: paste the "
                    "whole line that the master prints, gleaner://HOST:PORT/KEY.INVITE; or give "
                    "--insecure to both ends, which encrypts nothing",
                    to_text(address.where))};
  }
  return {};
}

}  // namespace gleaner
