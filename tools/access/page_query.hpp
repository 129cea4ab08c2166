// Asking a run's page how the run stands: one request, one answer. For a master without a port for
// volunteers, and for whoever has the page's address alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/host_port.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"

namespace gleaner {

// As a browser takes it: http://HOST:PORT/#KEY, where the key, and the slash, may be missing.
struct PageAddress {
  HostPort where;
  std::string key;
  friend bool operator==(const PageAddress&, const PageAddress&) = default;
};

inline constexpr std::string_view kPageScheme = "http://";

// Nullopt where the text is no such address.
std::optional<PageAddress> parse_page_address(std::string_view text);

// Errors name HOST:PORT. kIo when nobody answers there, kInvite when the page refuses the key, and
// kProtocol when what answers is no page of a run.
Result<RunStatus> ask_page(const PageAddress& page);

}  // namespace gleaner
