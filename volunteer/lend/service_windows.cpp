#include "volunteer/lend/service_windows.hpp"

#include <winsock2.h>
//
#include <windows.h>
//
#include <fmt/format.h>
#include <sddl.h>
#include <shellapi.h>
#include <shlobj.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "common/access/secret_file.hpp"
#include "common/os/windows_text.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/verbs.hpp"

namespace gleaner::volunteer {
namespace {

namespace fs = std::filesystem;
using os::wide;

constexpr wchar_t kServiceName[] = L"gleaner-volunteer";
// The first argument of a program that Windows starts as the service.
constexpr char kAsService[] = "service";
constexpr DWORD kStopMs = 60'000;

using Work = std::function<int(std::vector<std::string>)>;

// Global, because Windows passes no data of ours to a service's functions.
struct Service {
  std::vector<std::string> arguments;
  const Work* work = nullptr;  // null in any other program
  SERVICE_STATUS_HANDLE manager = nullptr;
  std::atomic<bool> is_stopping = false;
};

Service& service() {
  static Service one;
  return one;
}

void report(DWORD state, int status = 0) {
  SERVICE_STATUS facts{};
  facts.dwServiceType = SERVICE_WIN32_OWN_PROCESS;
  facts.dwCurrentState = state;
  // Stops before the shutdown, while the network for the hand-over is still there.
  if (state == SERVICE_RUNNING) {
    facts.dwControlsAccepted = SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_PRESHUTDOWN;
  }
  if (status != 0) {
    facts.dwWin32ExitCode = ERROR_SERVICE_SPECIFIC_ERROR;
    facts.dwServiceSpecificExitCode = static_cast<DWORD>(status);
  }
  facts.dwWaitHint = state == SERVICE_STOP_PENDING ? kStopMs : 0;
  (void)SetServiceStatus(service().manager, &facts);
}

DWORD WINAPI on_control(DWORD control, DWORD /*event*/, void* /*data*/, void* /*context*/) {
  if (control == SERVICE_CONTROL_INTERROGATE) return NO_ERROR;
  if (control != SERVICE_CONTROL_STOP && control != SERVICE_CONTROL_PRESHUTDOWN) {
    return ERROR_CALL_NOT_IMPLEMENTED;
  }
  service().is_stopping = true;
  report(SERVICE_STOP_PENDING);
  (void)std::raise(SIGTERM);
  return NO_ERROR;
}

void end_before_it_began(int /*signal*/) {
  note_end(0);
  std::_Exit(0);
}

void WINAPI service_main(DWORD /*count*/, wchar_t** /*arguments*/) {
  // With a console, the logoff of a user would end the service.
  (void)std::freopen("NUL", "w", stdout);
  (void)std::freopen("NUL", "w", stderr);
  (void)FreeConsole();
  service().manager = RegisterServiceCtrlHandlerExW(kServiceName, &on_control, nullptr);
  (void)std::signal(SIGTERM, &end_before_it_began);
  report(SERVICE_RUNNING);
  const int status = (*service().work)(service().arguments);
  note_end(status);
  std::_Exit(status);
}

struct Closed {
  void operator()(SC_HANDLE handle) const { CloseServiceHandle(handle); }
};

using Handle = std::unique_ptr<std::remove_pointer_t<SC_HANDLE>, Closed>;

struct Freed {
  void operator()(void* memory) const { LocalFree(memory); }
};

Error failed(const std::string& what) {
  return {ErrorCode::kIo, fmt::format("{}: {}", what, os::error_words(GetLastError()))};
}

Handle open_manager(DWORD rights) {
  return Handle(OpenSCManagerW(nullptr, nullptr, rights));
}

Handle open_service(DWORD rights) {
  const Handle manager = open_manager(SC_MANAGER_CONNECT);
  return Handle(manager ? OpenServiceW(manager.get(), kServiceName, rights) : nullptr);
}

Result<void> stop(SC_HANDLE running) {
  SERVICE_STATUS status{};
  (void)ControlService(running, SERVICE_CONTROL_STOP, &status);
  const bool has_stopped = wait_until([&] {
    return QueryServiceStatus(running, &status) != 0 && status.dwCurrentState == SERVICE_STOPPED;
  });
  if (!has_stopped) return Error{ErrorCode::kBusy, "the service gleaner-volunteer does not stop"};
  return {};
}

fs::path folder(int kind, const char* name) {
  std::array<wchar_t, MAX_PATH> path{};
  (void)SHGetFolderPathW(nullptr, kind, nullptr, SHGFP_TYPE_CURRENT, path.data());
  return fs::path(path.data()) / name;
}

fs::path data_folder() {
  return folder(CSIDL_COMMON_APPDATA, "gleaner");
}

fs::path program_file() {
  return folder(CSIDL_PROGRAM_FILES, "Gleaner") / "gleaner-volunteer.exe";
}

// Deletes links in the folder, but not their targets.
void delete_folder(const fs::path& path) {
  const std::wstring list = path.wstring() + L'\0';
  SHFILEOPSTRUCTW job{};
  job.wFunc = FO_DELETE;
  job.pFrom = list.c_str();
  job.fFlags = FOF_NO_UI;
  (void)wait_until([&] {
    (void)SHFileOperationW(&job);
    return GetFileAttributesW(path.c_str()) == INVALID_FILE_ATTRIBUTES;
  });
}

// Stores the line in a new folder, unless the existing folder is known to be ours: anybody may make
// folders there.
Result<void> keep(const std::string& line, bool has_folder) {
  const fs::path path = data_folder();
  const std::string file = service_line_file();
  // Administrators own the folder. The system, administrators and the service may change its
  // contents.
  PSECURITY_DESCRIPTOR made = nullptr;
  if (ConvertStringSecurityDescriptorToSecurityDescriptorW(
          L"O:BAD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;0x1301bf;;;LS)", SDDL_REVISION_1, &made,
          nullptr) == 0) {
    return failed(file);
  }
  const std::unique_ptr<void, Freed> freed(made);
  SECURITY_ATTRIBUTES rights{sizeof(SECURITY_ATTRIBUTES), made, FALSE};
  if (!has_folder) delete_folder(path);
  if (CreateDirectoryW(path.c_str(), &rights) == 0 &&
      !(has_folder && GetLastError() == ERROR_ALREADY_EXISTS)) {
    return failed(path.string());
  }
  if (auto kept = write_secret_file(file, line + "\n", SecretFile::kReplaced); !kept) {
    return kept.error();
  }
  if (SetFileSecurityW(wide(file).c_str(),
                       DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION,
                       made) == 0) {
    return failed(file);
  }
  return {};
}

Result<void> copy_program() {
  const fs::path program = program_file();
  std::error_code ignored;
  if (fs::equivalent(own_path(), program, ignored)) return {};
  fs::create_directories(program.parent_path(), ignored);
  // A service that was just stopped may not have ended.
  const bool is_there =
      wait_until([&] { return CopyFileW(wide(own_path()).c_str(), program.c_str(), FALSE) != 0; });
  if (!is_there) return failed(program.string());
  return {};
}

// It starts when all that Windows starts at once has, and 10 s after it has failed. A Windows that
// lacks one of these has a service all the same.
void describe(SC_HANDLE made) {
  wchar_t words[] = L"Lends this machine to a Gleaner master while nobody needs it";
  SERVICE_DESCRIPTIONW description{words};
  (void)ChangeServiceConfig2W(made, SERVICE_CONFIG_DESCRIPTION, &description);
  SERVICE_DELAYED_AUTO_START_INFO late{TRUE};
  (void)ChangeServiceConfig2W(made, SERVICE_CONFIG_DELAYED_AUTO_START_INFO, &late);
  SC_ACTION again{SC_ACTION_RESTART, 10'000};
  SERVICE_FAILURE_ACTIONSW failures{86'400, nullptr, nullptr, 1, &again};
  (void)ChangeServiceConfig2W(made, SERVICE_CONFIG_FAILURE_ACTIONS, &failures);
  wchar_t least[] = L"SeChangeNotifyPrivilege\0";
  SERVICE_REQUIRED_PRIVILEGES_INFOW privileges{least};
  (void)ChangeServiceConfig2W(made, SERVICE_CONFIG_REQUIRED_PRIVILEGES_INFO, &privileges);
}

}  // namespace

int run_as_started(std::vector<std::string> arguments, const Work& work) {
  if (arguments.empty() || arguments.front() != kAsService) return work(std::move(arguments));
  arguments.erase(arguments.begin());
  service().arguments = std::move(arguments);
  service().work = &work;
  std::wstring name = kServiceName;
  const std::array<SERVICE_TABLE_ENTRYW, 2> table = {{{name.data(), &service_main}, {}}};
  if (StartServiceCtrlDispatcherW(table.data()) == 0) {
    std::fprintf(stderr, "gleaner-volunteer: only Windows starts the service: %s\n",
                 os::error_words(GetLastError()).c_str());
    return static_cast<int>(ExitCode::kUsage);
  }
  std::_Exit(0);  // it has ended, though a thread may compute
}

// Windows restarts a service that ends without this report.
void note_end(int status) {
  const bool is_final = status == static_cast<int>(ExitCode::kOk) ||
                        status == static_cast<int>(ExitCode::kUsage) ||
                        status == static_cast<int>(ExitCode::kNetwork);
  if (service().work != nullptr && (is_final || service().is_stopping)) {
    report(SERVICE_STOPPED, status);
  }
}

std::string own_path() {
  std::wstring path(32'768, L'\0');
  path.resize(GetModuleFileNameW(nullptr, path.data(), static_cast<DWORD>(path.size())));
  return os::narrow(path);
}

bool wait_until(const std::function<bool()>& is_done) {
  constexpr DWORD kPauseMs = 100;
  for (int left = 600; left > 0; --left) {
    if (is_done()) return true;
    Sleep(kPauseMs);
  }
  return false;
}

bool has_service() {
  return open_service(SERVICE_QUERY_STATUS) != nullptr;
}

std::string service_line_file() {
  return (data_folder() / "volunteer.line").string();
}

Result<void> install_service(const std::string& line) {
  constexpr DWORD kRights =
      SERVICE_CHANGE_CONFIG | SERVICE_QUERY_STATUS | SERVICE_START | SERVICE_STOP;
  Handle made = open_service(kRights);
  if (made) {
    if (auto stopped = stop(made.get()); !stopped) return stopped.error();
  }
  if (auto copied = copy_program(); !copied) return copied.error();
  if (auto kept = keep(line, made != nullptr); !kept) return kept.error();
  const std::wstring command = os::command_line(
      {program_file().string(), kAsService, "--line-file", service_line_file(), "--cache",
       (data_folder() / "cache").string(), "--control", paths_to_ask("", "").back()});
  if (!made) {
    const Handle manager = open_manager(SC_MANAGER_CREATE_SERVICE);
    made.reset(manager ? CreateServiceW(manager.get(), kServiceName, L"Gleaner volunteer", kRights,
                                        SERVICE_WIN32_OWN_PROCESS, SERVICE_AUTO_START,
                                        SERVICE_ERROR_NORMAL, command.c_str(), nullptr, nullptr,
                                        nullptr, LR"(NT AUTHORITY\LocalService)", L"")
                       : nullptr);
    if (!made) return failed("Windows makes no service");
  } else if (ChangeServiceConfigW(made.get(), SERVICE_NO_CHANGE, SERVICE_AUTO_START,
                                  SERVICE_NO_CHANGE, command.c_str(), nullptr, nullptr, nullptr,
                                  nullptr, nullptr, nullptr) == 0) {
    return failed("Windows does not change the service");
  }
  describe(made.get());
  if (StartServiceW(made.get(), 0, nullptr) == 0) return failed("Windows starts no service");
  return {};
}

Result<void> remove_service() {
  const Handle made = open_service(SERVICE_QUERY_STATUS | SERVICE_STOP | DELETE);
  if (!made) return failed("Windows opens no service");
  if (auto stopped = stop(made.get()); !stopped) return stopped.error();
  if (DeleteService(made.get()) == 0) return failed("Windows deletes no service");
  delete_folder(data_folder());
  const fs::path program = program_file();
  std::error_code ignored;
  if (fs::equivalent(own_path(), program, ignored)) {
    (void)MoveFileExW(program.c_str(), nullptr, MOVEFILE_DELAY_UNTIL_REBOOT);
  } else {
    delete_folder(program.parent_path());
  }
  return {};
}

}  // namespace gleaner::volunteer
