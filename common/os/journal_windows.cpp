#include "common/os/journal.hpp"

namespace gleaner::os {

std::function<void(const std::vector<std::string>& fields)> journal_behind(std::FILE* /*stream*/) {
  return {};
}

}  // namespace gleaner::os
