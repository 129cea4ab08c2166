#include <windows.h>

#include <algorithm>
#include <array>

#include "common/os/priority.hpp"

namespace gleaner {
namespace {

// The priorities of a thread in a process of normal priority, from the highest.
struct Step {
  int nice;
  int priority;
};

constexpr std::array<Step, 4> kSteps = {{{0, THREAD_PRIORITY_NORMAL},
                                         {1, THREAD_PRIORITY_BELOW_NORMAL},
                                         {kVolunteerNice, THREAD_PRIORITY_LOWEST},
                                         {kNiceIdle, THREAD_PRIORITY_IDLE}}};

// THREAD_POWER_THROTTLING_STATE of Windows 10, which older headers lack.
struct PowerThrottling {
  ULONG version = 1;
  ULONG control = 1;  // of the speed of execution: EcoQoS
  ULONG state = 1;
};

constexpr int kThreadPowerThrottling = 3;

// Prefers efficient processors and speeds. Older systems lack the function or refuse.
void run_cheaply() {
  using Set = BOOL(WINAPI*)(HANDLE, int, void*, DWORD);
  const HMODULE kernel = GetModuleHandleW(L"kernel32.dll");
  const auto set = reinterpret_cast<Set>(
      reinterpret_cast<void*>(GetProcAddress(kernel, "SetThreadInformation")));
  PowerThrottling eco;
  if (set != nullptr) (void)set(GetCurrentThread(), kThreadPowerThrottling, &eco, sizeof eco);
}

}  // namespace

void give_way(int nice) {
  if (niceness() >= std::min(nice, kNiceIdle)) return;
  const HANDLE thread = GetCurrentThread();
  const auto step =
      std::find_if(kSteps.rbegin(), kSteps.rend(), [&](const Step& at) { return at.nice <= nice; });
  if (nice >= kNiceIdle) {
    run_cheaply();
    // Background mode also lowers the priority of disk and memory.
    (void)SetThreadPriority(thread, THREAD_MODE_BACKGROUND_BEGIN);
  }
  (void)SetThreadPriority(thread, step->priority);
}

int niceness() {
  const int priority = GetThreadPriority(GetCurrentThread());
  const auto step = std::find_if(kSteps.begin(), kSteps.end(),
                                 [&](const Step& at) { return at.priority <= priority; });
  return step == kSteps.end() ? kNiceIdle : step->nice;
}

void pin_to_processor(unsigned index) {
  DWORD_PTR allowed = 0;
  DWORD_PTR system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) == 0 || allowed == 0) return;
  unsigned left = index % static_cast<unsigned>(__builtin_popcountll(allowed));
  for (DWORD_PTR one = 1; one != 0; one <<= 1) {
    if ((allowed & one) == 0 || left-- > 0) continue;
    (void)SetThreadAffinityMask(GetCurrentThread(), one);
    return;
  }
}

// Windows kills no process when memory runs out: it refuses further memory.
void give_way_in_memory() {}

}  // namespace gleaner
