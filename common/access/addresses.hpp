// Where a master is, how to know that it is the right one, and by which invite one comes to it:
//
//   gleaner://HOST:PORT/KEY.INVITE
//
// KEY is the master's KeyId and INVITE an InviteKey, both base32. HOST:PORT alone is the address of
// a master that does not encrypt. No I/O.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/access/standing.hpp"
#include "common/host_port.hpp"
#include "common/result.hpp"

namespace gleaner {

struct MasterAddress {
  HostPort where;

  struct Secure {
    KeyId key;
    InviteKey invite;
    friend bool operator==(const Secure&, const Secure&) = default;
  };

  std::optional<Secure> secure;  // none: plain text
  friend bool operator==(const MasterAddress&, const MasterAddress&) = default;
};

inline constexpr std::string_view kAddressScheme = "gleaner://";

// Where the scheme begins, in capitals or not; npos when it is nowhere.
std::size_t find_address_scheme(std::string_view text);

// The address within what people paste: between blanks, quotes or angle brackets, in capitals, with
// a point or a slash behind it, or in the whole command. Without a scheme, the text between these.
std::string address_in(std::string_view pasted);

// Errors never repeat the part that is secret.
Result<MasterAddress> parse_master_address(std::string_view text);
// The form that parse_master_address accepts; it holds the invite's secret.
std::string to_text(const MasterAddress& address);

// Encrypted exactly where `is_insecure` was not given: an error says which of both is to change.
Result<void> check_secrecy(const MasterAddress& address, bool is_insecure);

// A page's key ends its address, after a #, which browsers keep to themselves: whoever was told the
// whole address may do there what mere readers may not.

// From the system's generator.
InviteSecret make_page_key();

// 26 characters of base32.
std::string page_key_text(const InviteSecret& key);

// In a time that does not depend on where the text differs.
bool is_page_key(std::string_view text, const InviteSecret& key);

// Keeps the secrets of a command line from other users of the machine.

// Overwrites the invite of each address gleaner://HOST:PORT/KEY.INVITE, and the key of each page
// http://HOST:PORT/#KEY, among the arguments that the system handed to main(), where `ps` reads
// them. To be called first, after they were copied.
void hide_secrets(std::span<char* const> arguments);

}  // namespace gleaner
