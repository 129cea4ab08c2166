#include "common/thread_priority.hpp"

#include <sys/resource.h>

namespace gleaner {

void give_way(int nice) {
  // Anybody may lower a priority. Were it refused nevertheless, threads would be as any others.
  if (niceness() < nice) (void)setpriority(PRIO_PROCESS, 0, nice);
}

int niceness() {
  return getpriority(PRIO_PROCESS, 0);
}

}  // namespace gleaner
