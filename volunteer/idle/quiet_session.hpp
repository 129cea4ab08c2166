// Giving way to programs of other sessions.
#pragma once

#include <optional>
#include <string>

namespace gleaner::volunteer {

// While it lives, the session of this process (setsid(2)) gives way to others as `nice` says, from
// 0 to 19. Linux shares processors among sessions first, and then among the threads of each
// (autogroups, sched(7)): idle threads in a session of their own would take as much as all that a
// person runs in another. A service whose control group has a share of its own is not concerned.
// One thread.
class QuietSession {
 public:
  // `root` is empty, but for tests. Does nothing where the session gives way as far already, and
  // where the kernel does not group by sessions.
  QuietSession(const std::string& root, int nice);
  // The session is as before: the terminal in which the program was started goes on.
  ~QuietSession();
  QuietSession(const QuietSession&) = delete;
  QuietSession& operator=(const QuietSession&) = delete;

 private:
  const std::string path_;
  std::optional<int> before_;
};

}  // namespace gleaner::volunteer
