#include "common/access/role.hpp"

namespace gleaner {

const char* role_name(Role role) {
  switch (role) {
    case Role::kObserver:
      return "observer";
    case Role::kVolunteer:
      return "volunteer";
    case Role::kAdmin:
      return "admin";
  }
  return "unknown";
}

std::optional<Role> parse_role(std::string_view name) {
  for (const Role role : {Role::kObserver, Role::kVolunteer, Role::kAdmin}) {
    if (name == role_name(role)) return role;
  }
  return std::nullopt;
}

}  // namespace gleaner
