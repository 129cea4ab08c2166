#include "tools/plan/plan.hpp"

namespace gleaner {

const char* resource_name(Resource resource) {
  switch (resource) {
    case Resource::kVolunteers:
      return "processors";
    case Resource::kShards:
      return "shards";
    case Resource::kMaster:
      return "master's processor";
    case Resource::kMasterLink:
      return "master's link";
    case Resource::kVolunteerLink:
      return "volunteers' links";
    case Resource::kLag:
      return "lag";
    case Resource::kRound:
      return "rounds' length";
    case Resource::kStore:
      return "store";
  }
  return "";
}

const char* resource_remedy(Resource resource) {
  switch (resource) {
    case Resource::kVolunteers:
      return "more volunteers or cores, fewer active neurons";
    case Resource::kShards:
      return "more shards, a multiple of all cores";
    case Resource::kMaster:
      return "more cores for the master";
    case Resource::kMasterLink:
      return "a faster link, fewer volunteers with more cores each";
    case Resource::kVolunteerLink:
      return "faster links, longer rounds, fewer hidden units";
    case Resource::kLag:
      return "a larger --staleness, larger batches";
    case Resource::kRound:
      return "longer rounds";
    case Resource::kStore:
      return "a faster disk, longer rounds";
  }
  return "";
}

}  // namespace gleaner
