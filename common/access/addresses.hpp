// A master's address, with the key that identifies it and the invite to it:
//
// gleaner://HOST:PORT/KEY.INVITE
//
// KEY is the master's KeyId and INVITE an InviteKey, both in base32. HOST:PORT alone is the address
// of a master without encryption. No I/O.
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

// The position of the scheme, in any case; npos if missing.
std::size_t find_address_scheme(std::string_view text);

// The address in pasted text: between blanks, quotes or angle brackets, in capitals, followed by a
// point or a slash, or within a command. Without a scheme, the text between such characters.
std::string address_in(std::string_view pasted);

// Errors never repeat the secret part.
Result<MasterAddress> parse_master_address(std::string_view text);
// The form that parse_master_address accepts; it contains the invite's secret.
std::string to_text(const MasterAddress& address);

// Checks that the address is encrypted exactly if `is_insecure` is false. The error says which of
// both to change.
Result<void> check_secrecy(const MasterAddress& address, bool is_insecure);

// A page's key stands at the end of its address after a #, a part that browsers do not send.
// A user with the whole address may do more than read.

// Random, from the system's generator.
InviteSecret make_page_key();

// 26 characters of base32.
std::string page_key_text(const InviteSecret& key);

// Takes the same time wherever the texts differ.
bool is_page_key(std::string_view text, const InviteSecret& key);

// Hides secrets from other users of the machine: overwrites the invite of each
// gleaner://HOST:PORT/KEY.INVITE and the key of each page http://HOST:PORT/#KEY in the arguments of
// main(), where `ps` reads them. Call first, after copying the arguments.
void hide_secrets(std::span<char* const> arguments);

}  // namespace gleaner
