#include "volunteer/idle/quiet_session.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "common/thread_priority.hpp"
#include "volunteer/idle/text_file.hpp"

namespace gleaner::volunteer {
namespace {

// "/autogroup-6 nice 0"
std::optional<int> niceness_of_session(const std::string& path) {
  std::istringstream text(read_text_file(path).value_or(""));
  std::string group;
  std::string word;
  int nice = 0;
  if (!(text >> group >> word >> nice) || word != "nice") return std::nullopt;
  return nice;
}

void write(const std::string& path, int nice) {
  std::ofstream(path) << nice << '\n';
}

}  // namespace

QuietSession::QuietSession(const std::string& root, int nice)
    : path_(root + "/proc/self/autogroup") {
  const int wanted = std::min(nice, kNiceMax);
  const std::optional<int> now = niceness_of_session(path_);
  if (!now || *now >= wanted) return;
  before_ = now;
  write(path_, wanted);
}

QuietSession::~QuietSession() {
  if (before_) write(path_, *before_);
}

}  // namespace gleaner::volunteer
