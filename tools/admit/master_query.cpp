#include "tools/admit/master_query.hpp"

#include <utility>

#include "master/door/access_file.hpp"
#include "schema/question.hpp"
#include "schema/versions.hpp"
#include "tools/cli/store_access.hpp"

namespace gleaner {

Result<RunStatus> ask_status(const MasterAddress& address) {
  return ask<RunStatus>(address, observe_by(address));
}

Result<AccessAnswer> ask_access(const MasterAddress& address, AccessRequest request) {
  request.protocol_min = kProtocolMin;
  request.protocol_max = kProtocolMax;
  request.build = kBuildVersion;
  request.invite = observe_by(address).invite;
  return ask<AccessAnswer>(address, std::move(request));
}

int exit_status_of_asking(const Result<void>& done) {
  const int status = report_on_store(done);
  if (done) return status;
  switch (done.error().code) {
    case ErrorCode::kIo:
    case ErrorCode::kProtocol:
    case ErrorCode::kInvite:
    case ErrorCode::kIdentity:
      return static_cast<int>(ExitCode::kNetwork);
    default:
      return status;
  }
}

Result<MasterAddress> owner_address(const std::string& store, const RunningMaster& note) {
  const auto where = parse_host_port(note.address);
  if (!where) {
    return Error{ErrorCode::kCorrupt, "the note of its master cannot be read"};
  }
  if (note.is_plain) return MasterAddress{*where, std::nullopt};
  const auto key = KeyPair::load(master_key_path(store));
  if (!key) return key.error();
  return MasterAddress{*where, MasterAddress::Secure{key->id(), invite_key(*key, InviteId{})}};
}

}  // namespace gleaner
