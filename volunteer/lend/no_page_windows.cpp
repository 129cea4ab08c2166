#include "volunteer/lend/volunteer_page.hpp"

namespace gleaner::volunteer {

Result<std::unique_ptr<VolunteerPage>> VolunteerPage::open(const Options& /*options*/,
                                                           Ask /*ask*/) {
  return Error{ErrorCode::kInvalidArgument,
               "there is no page under Windows; `gleaner-volunteer status` tells the same"};
}

std::string VolunteerPage::url() const {
  return "";
}

void VolunteerPage::publish(std::string /*status*/) {}

}  // namespace gleaner::volunteer
