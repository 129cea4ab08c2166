#include <winsock2.h>
//
#include <windows.h>
//
#include <bcrypt.h>
#include <io.h>
#include <malloc.h>

#include <algorithm>
#include <array>

#include "common/os/process.hpp"
#include "common/os/windows_text.hpp"

namespace gleaner::os {
namespace {

HANDLE console_of(std::FILE* stream) {
  return reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(stream)));
}

double seconds_of(const FILETIME& time) {
  return (static_cast<double>(time.dwHighDateTime) * 4294967296.0 + time.dwLowDateTime) / 1e7;
}

}  // namespace

std::uint64_t process_id() {
  return GetCurrentProcessId();
}

double processor_seconds() {
  FILETIME made{};
  FILETIME ended{};
  FILETIME kernel{};
  FILETIME user{};
  if (GetProcessTimes(GetCurrentProcess(), &made, &ended, &kernel, &user) == 0) return 0;
  return seconds_of(kernel) + seconds_of(user);
}

bool is_administrator() {
  std::array<std::byte, SECURITY_MAX_SID_SIZE> administrators{};
  auto bytes = static_cast<DWORD>(administrators.size());
  BOOL is_one = FALSE;
  return CreateWellKnownSid(WinBuiltinAdministratorsSid, nullptr, administrators.data(), &bytes) !=
             0 &&
         CheckTokenMembership(nullptr, administrators.data(), &is_one) != 0 && is_one != FALSE;
}

std::uint32_t usable_cores() {
  DWORD_PTR allowed = 0;
  DWORD_PTR system = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &system) == 0) return 1;
  const auto in_group = static_cast<std::uint32_t>(__builtin_popcountll(allowed));
  // A process that spans groups of 64 processors has no mask.
  return in_group > 0 ? in_group
                      : std::max<std::uint32_t>(1, GetActiveProcessorCount(ALL_PROCESSOR_GROUPS));
}

std::uint64_t machine_memory() {
  MEMORYSTATUSEX status{};
  status.dwLength = sizeof status;
  return GlobalMemoryStatusEx(&status) != 0 ? status.ullTotalPhys : 0;
}

std::string host_name() {
  std::array<wchar_t, 256> name{};
  auto units = static_cast<DWORD>(name.size());
  const bool is_known = GetComputerNameExW(ComputerNameDnsHostname, name.data(), &units) != 0;
  return is_known ? narrow(std::wstring(name.data(), units)) : "";
}

bool random_bytes(std::span<std::uint8_t> bytes) {
  return BCryptGenRandom(nullptr, bytes.data(), static_cast<ULONG>(bytes.size()),
                         BCRYPT_USE_SYSTEM_PREFERRED_RNG) == 0;
}

std::int64_t monotonic_us() {
  // This clock counts while the machine sleeps.
  LARGE_INTEGER ticks{};
  LARGE_INTEGER per_second{};
  QueryPerformanceCounter(&ticks);
  QueryPerformanceFrequency(&per_second);
  const std::int64_t seconds = ticks.QuadPart / per_second.QuadPart;
  const std::int64_t rest = ticks.QuadPart % per_second.QuadPart;
  return seconds * 1'000'000 + rest * 1'000'000 / per_second.QuadPart;
}

bool local_time(std::time_t seconds, std::tm& local) {
  return localtime_s(&local, &seconds) == 0;
}

// Windows has no limit that a process could reach.
std::uint64_t raise_descriptor_limit() {
  return ~std::uint64_t{0};
}

void survive_lost_readers() {}

bool ignores_hangup() {
  return true;
}

bool run_program(const std::vector<std::string>& command) {
  std::wstring line = command_line(command);
  STARTUPINFOW start{};
  start.cb = sizeof start;
  PROCESS_INFORMATION child{};
  if (CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_NO_WINDOW, nullptr,
                     nullptr, &start, &child) == 0) {
    return false;
  }
  DWORD status = 1;
  WaitForSingleObject(child.hProcess, INFINITE);
  GetExitCodeProcess(child.hProcess, &status);
  CloseHandle(child.hThread);
  CloseHandle(child.hProcess);
  return status == 0;
}

// Large pages need a privilege that volunteers lack.
void prefer_large_pages(void* /*begin*/, std::size_t /*bytes*/) {}

void give_memory_back() {
  (void)_heapmin();
}

bool is_terminal(std::FILE* stream) {
  DWORD mode = 0;
  return GetConsoleMode(console_of(stream), &mode) != 0;
}

unsigned terminal_columns(std::FILE* stream) {
  CONSOLE_SCREEN_BUFFER_INFO facts{};
  if (GetConsoleScreenBufferInfo(console_of(stream), &facts) == 0) return 0;
  return static_cast<unsigned>(facts.srWindow.Right - facts.srWindow.Left + 1);
}

unsigned columns_of(char32_t /*character*/) {
  return 1;
}

std::string terminal_kind() {
  const HANDLE console = console_of(stdout);
  DWORD mode = 0;
  const bool is_able =
      GetConsoleMode(console, &mode) != 0 &&
      SetConsoleMode(console, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
  return is_able ? "windows" : "";
}

std::string locale_name() {
  SetConsoleOutputCP(CP_UTF8);
  return "UTF-8";
}

std::function<void(const std::vector<std::string>& fields)> journal_behind(std::FILE* /*stream*/) {
  return {};
}

}  // namespace gleaner::os
