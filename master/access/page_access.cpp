#include "master/access/page_access.hpp"

namespace gleaner {

Result<Role> reader_role(const PageAccess& access, std::string_view invite, std::int64_t now) {
  if (!access.key) return Role::kObserver;
  const auto shown = valid_invite(access.book, *access.key, invite, now);
  if (!shown) return shown.error();
  if (*shown == InviteId{}) return Role::kAdmin;
  const Invite& entry = access.book.invites.at(*shown);
  if (!entry.is_reusable) {
    return Error{ErrorCode::kInvite,
                 "the invite is for one key, which a browser does not have: ask the master's owner "
                 "for one that `gleaner invite create --reusable` made"};
  }
  return entry.role;
}

}  // namespace gleaner
