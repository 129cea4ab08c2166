#include <windows.h>
//
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "common/access/secret_file.hpp"
#include "common/os/process.hpp"
#include "common/os/windows_text.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/service_windows.hpp"
#include "volunteer/lend/session_helper.hpp"
#include "volunteer/lend/verbs.hpp"

namespace gleaner::volunteer {
namespace {

// Windows starts each command under this key when the user logs in.
constexpr wchar_t kAtLogon[] = LR"(Software\Microsoft\Windows\CurrentVersion\Run)";
constexpr wchar_t kName[] = L"Gleaner volunteer";
// Stands for the stored line in a command. The Start menu's entry uses it even if no line is
// stored.
constexpr char kKept[] = "kept";

// Starts a program without a window. It outlives this one.
bool start(const std::vector<std::string>& command) {
  std::wstring line = os::command_line(command);
  STARTUPINFOW how{};
  how.cb = sizeof how;
  PROCESS_INFORMATION child{};
  if (CreateProcessW(nullptr, line.data(), nullptr, nullptr, FALSE,
                     CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP, nullptr, nullptr, &how,
                     &child) == 0) {
    return false;
  }
  CloseHandle(child.hThread);
  CloseHandle(child.hProcess);
  return true;
}

// Both return a system error, or 0.

LSTATUS start_at_logon(const std::vector<std::string>& command) {
  const std::wstring line = os::command_line(command);
  return RegSetKeyValueW(HKEY_CURRENT_USER, kAtLogon, kName, REG_SZ, line.c_str(),
                         static_cast<DWORD>((line.size() + 1) * sizeof(wchar_t)));
}

LSTATUS start_no_more() {
  return RegDeleteKeyValueW(HKEY_CURRENT_USER, kAtLogon, kName);
}

// Asks the running volunteer to hand over and end. Returns whether one runs.
bool finish() {
  const auto paths = control_paths("", "");
  return ask_volunteer(paths.front(), R"({"verb":"finish"})").ok();
}

bool runs() {
  return ControlClient::connect(control_paths("", "").front()).ok();
}

// The line that was stored for the service, otherwise for this user.
std::string kept_line(const std::string& file) {
  constexpr std::size_t kBytesMax = 1024;
  for (const std::string& each : {service_line_file(), file}) {
    const auto line = read_secret_file(each, kBytesMax);
    if (line && *line) return **line;
  }
  return kKept;
}

Error not_allowed() {
  return {ErrorCode::kIo,
          "the service gleaner-volunteer lends this machine: an administrator changes that, in a "
          "window that was opened with \"Run as administrator\""};
}

// Returns what it did; empty when there was nothing to undo.
Result<std::string> leave_logon(const std::string& file) {
  const bool was_running = finish();
  const bool was_at_logon = start_no_more() == 0;
  close_tray();
  std::error_code error;
  const bool was_there = std::filesystem::remove(file, error);
  if (error) return Error{ErrorCode::kIo, file + ": " + error.message()};
  return fmt::format("{}{}{}",
                     was_running ? "The volunteer hands over what it holds, and ends.\n" : "",
                     was_at_logon ? "It starts no more when you log in.\n" : "",
                     was_there ? "The line in " + file + " is deleted.\n" : "");
}

}  // namespace

std::string line_file() {
  const char* folder = std::getenv("LOCALAPPDATA");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::filesystem::path base = folder != nullptr ? folder : ".";
  return (base / "gleaner" / "volunteer.line").string();
}

JoinPlace this_machine(Reach reach) {
  JoinPlace place;
  place.reach = std::move(reach);
  place.is_root = os::is_administrator();
  place.has_unit = has_service();
  place.run = &start;
  return place;
}

Result<std::string> join(std::string line, const std::string& file, const JoinPlace& place) {
  if (place.has_unit && !place.is_root) return not_allowed();
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  const std::vector<std::string> command = {own_path(), "--line-file", file, "--cache",
                                            (folder / "cache").string()};
  const auto cannot_start = [] {
    return Error{ErrorCode::kIo,
                 "Windows does not start the volunteer: " + os::error_words(GetLastError())};
  };
  const std::vector<std::string> icon = {own_path(), "session-helper"};
  std::error_code ignored;  // a write reports the error
  if (line == kKept && place.is_root) line = kept_line(file);
  if (line == kKept && std::filesystem::exists(file, ignored)) {
    if (!runs() && !place.run(command)) return cannot_start();
    (void)place.run(icon);
    return std::string();
  }
  if (line == kKept) {
    std::cout << "Paste the line that the run's owner gave you, and press Enter:" << std::endl;
    line.clear();
  }
  if (line.empty()) std::getline(std::cin, line);
  line = address_in(line);
  const auto address = parse_master_address(line);
  if (!address) return address.error();
  if (auto fits = check_secrecy(*address, false); !fits) return fits.error();
  const Result<void> reached = place.reach(*address);
  const std::string runs_and =
      fmt::format("{}, and starts ", reached ? "runs" : "tries again until it can");
  if (place.is_root) {
    if (auto installed = install_service(line); !installed) return installed.error();
    if (auto left = leave_logon(file); !left) return left.error();
    return reach_sentence(*address, reached) +
           fmt::format(
               "The line is kept in {}, which only LocalService and administrators may read.\n"
               "The service gleaner-volunteer {}with the machine. As an administrator, ask what it "
               "does, and why:\n"
               "  gleaner-volunteer status\n",
               service_line_file(), runs_and);
  }
  std::filesystem::create_directories(folder, ignored);
  if (auto kept = write_secret_file(file, line + "\n", SecretFile::kReplaced); !kept) {
    return kept.error();
  }
  if (const LSTATUS error = start_at_logon({own_path(), "join", kKept}); error != 0) {
    return Error{ErrorCode::kIo, "Windows does not take a command for every logon: " +
                                     os::error_words(static_cast<unsigned long>(error))};
  }
  // A running volunteer has the old line.
  if (finish()) (void)wait_until([] { return !runs(); });
  if (!place.run(command)) return cannot_start();
  (void)place.run(icon);
  return reach_sentence(*address, reached) +
         fmt::format(
             "The line is kept in {}, which only you may read.\n"
             "The volunteer {}when you log in. What it does, and why:\n"
             "  gleaner-volunteer status\n",
             file, runs_and);
}

Result<std::string> leave(const std::string& file, const JoinPlace& place) {
  if (place.has_unit && !place.is_root) return not_allowed();
  auto text = leave_logon(file);
  if (!text || !place.has_unit) {
    return text && text->empty() ? "There was no line in " + file + ".\n" : text;
  }
  if (auto removed = remove_service(); !removed) return removed.error();
  return *text +
         "The service has handed over what it held, and is deleted with its line, key and "
         "examples.\n";
}

}  // namespace gleaner::volunteer
