// Asking a running master: one connection, one question, one answer.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/access/addresses.hpp"
#include "common/host_port.hpp"
#include "common/result.hpp"
#include "schema/messages.hpp"
#include "storage/master_note.hpp"

namespace gleaner {

// Errors name HOST:PORT. kIo when nobody answers there, kIdentity when another key does; what the
// master refuses has the code it gave.
Result<RunStatus> ask_status(const MasterAddress& address);
// The invite and the protocol of `request` are filled in here.
Result<AccessAnswer> ask_access(const MasterAddress& address, AccessRequest request);

// The exit status of a verb that asked: a master that cannot be asked is a matter of the network,
// and everything else one of the store.
int exit_status_of_asking(const Result<void>& done);

// How the holder of the folder `store` reaches the port that `note` tells of, no page: as an
// administrator, by the master's own key. In plain text where the master encrypts nothing.
Result<MasterAddress> owner_address(const std::string& store, const RunningMaster& note);

// Asking a run's page how the run stands: one request, one answer. For a master without a port for
// volunteers, and for whoever has the page's address alone.

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
