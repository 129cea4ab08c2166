#include <windows.h>

#include "volunteer/lend/machine.hpp"

namespace gleaner::volunteer {

std::optional<bool> Machine::on_battery() const {
  SYSTEM_POWER_STATUS status{};
  if (GetSystemPowerStatus(&status) == 0 || status.ACLineStatus > 1) return std::nullopt;
  return status.ACLineStatus == 0;
}

// Windows shows the temperature to administrators alone.
std::optional<double> Machine::celsius() const {
  return std::nullopt;
}

std::optional<std::uint64_t> Machine::memory_bytes() const {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  if (GlobalMemoryStatusEx(&status) == 0) return std::nullopt;
  return status.ullAvailPhys;
}

// Windows has no figure for how long programs wait. This program's threads have the lowest priority
// there.
std::optional<double> Machine::cpu_pressure() const {
  return std::nullopt;
}

std::optional<double> Machine::memory_pressure() const {
  return std::nullopt;
}

// Session 0 has only services; every other session has a desktop.
bool Machine::has_display() const {
  DWORD session = 0;
  return ProcessIdToSessionId(GetCurrentProcessId(), &session) != 0 && session != 0;
}

}  // namespace gleaner::volunteer
