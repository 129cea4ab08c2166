
#include <winsock2.h>
//
#include <windows.h>
//
#include <shellapi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/os/windows_text.hpp"
#include "volunteer/lend/control_client.hpp"
#include "volunteer/lend/session_helper.hpp"
#include "volunteer/lend/verbs.hpp"

namespace gleaner::volunteer {
namespace {

// Tests look for the window by this name, and send it the menu's commands.
constexpr wchar_t kClass[] = L"GleanerVolunteerIcon";
constexpr UINT kFromIcon = WM_APP + 1;
constexpr UINT kAskMs = 3'000;

enum Command : UINT { kAskAgain = 0, kPauseForAnHour = 1, kResume = 2, kLeave = 3, kHide = 4 };

// A disc that fills a square of 16 x 16 pixels.
HICON make_disc(std::uint32_t colour) {
  constexpr int kSide = 16;
  constexpr std::uint32_t kOpaque = 0xff000000;
  std::array<std::uint32_t, kSide * kSide> pixels{};
  std::array<std::uint8_t, kSide * kSide / 8> mask{};  // marks transparent pixels for old systems
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const int across = 2 * x + 1 - kSide;
      const int down = 2 * y + 1 - kSide;
      const auto at = static_cast<std::size_t>(y * kSide + x);
      if (across * across + down * down <= kSide * kSide) {
        pixels[at] = kOpaque | colour;
      } else {
        mask[at / 8] = static_cast<std::uint8_t>(mask[at / 8] | 0x80 >> at % 8);
      }
    }
  }
  return CreateIcon(GetModuleHandleW(nullptr), kSide, kSide, 1, 32, mask.data(),
                    reinterpret_cast<const BYTE*>(pixels.data()));
}

class Tray {
 public:
  explicit Tray(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // False when this session has no desktop.
  bool open() {
    WNDCLASSW kind{};
    kind.lpfnWndProc = &on_message;
    kind.hInstance = GetModuleHandleW(nullptr);
    kind.lpszClassName = kClass;
    (void)RegisterClassW(&kind);
    // A hidden window. A message-only window would not learn that the desktop restarts.
    const HWND window = CreateWindowExW(0, kClass, L"", WS_POPUP, 0, 0, 0, 0, nullptr, nullptr,
                                        kind.hInstance, nullptr);
    if (window == nullptr) return false;
    SetWindowLongPtrW(window, GWLP_USERDATA, reinterpret_cast<LONG_PTR>(this));
    icon_.cbSize = sizeof icon_;
    icon_.hWnd = window;
    icon_.uID = 1;
    icon_.uFlags = NIF_MESSAGE | NIF_ICON | NIF_TIP;
    icon_.uCallbackMessage = kFromIcon;
    ask("status");
    SetTimer(window, 1, kAskMs, nullptr);
    return true;
  }

 private:
  static LRESULT CALLBACK on_message(HWND window, UINT message, WPARAM first, LPARAM second) {
    static const UINT desktop_has_started = RegisterWindowMessageW(L"TaskbarCreated");
    auto* const self = reinterpret_cast<Tray*>(GetWindowLongPtrW(window, GWLP_USERDATA));
    if (self == nullptr) return DefWindowProcW(window, message, first, second);
    if (message == WM_TIMER) {
      self->ask("status");
    } else if (message == WM_COMMAND) {
      self->obey(LOWORD(first));
    } else if (message == kFromIcon && (second == WM_RBUTTONUP || second == WM_LBUTTONUP)) {
      self->show_menu();
    } else if (message == WM_DESTROY) {
      (void)Shell_NotifyIconW(NIM_DELETE, &self->icon_);
      PostQuitMessage(0);
    } else if (message == desktop_has_started) {
      self->is_there_ = false;
      self->show();
    } else {
      return DefWindowProcW(window, message, first, second);
    }
    return 0;
  }

  // Sends a verb, and shows the status that answers.
  void ask(const char* verb, int seconds = 0) {
    nlohmann::json request = {{"verb", verb}};
    if (seconds > 0) request["seconds"] = seconds;
    sentence_ = "No volunteer runs here";
    works_ = false;
    const Result<std::string> answer = ask_volunteer(paths_.front(), request.dump());
    const auto status = nlohmann::json::parse(answer ? *answer : "", nullptr, false);
    try {
      if (answer) sentence_ = status.at("sentence").get<std::string>();
      if (answer) works_ = status.at("verdict").at("works").get<bool>();
    } catch (const nlohmann::json::exception&) {
      sentence_ = "A volunteer of another version runs here";
    }
    show();
  }

  void show() {
    const std::wstring text = L"Gleaner: " + os::wide(sentence_);
    SetWindowTextW(icon_.hWnd, text.c_str());
    const std::size_t units = std::min(text.size(), std::size(icon_.szTip) - 1);
    std::copy_n(text.begin(), units, icon_.szTip);
    icon_.szTip[units] = L'\0';
    icon_.hIcon = works_ ? working_ : resting_;
    is_there_ = Shell_NotifyIconW(is_there_ ? NIM_MODIFY : NIM_ADD, &icon_) != 0;
  }

  void show_menu() {
    ask("status");
    const HMENU menu = CreatePopupMenu();
    AppendMenuW(menu, MF_GRAYED, kAskAgain, os::wide(sentence_).c_str());
    AppendMenuW(menu, MF_SEPARATOR, 0, nullptr);
    AppendMenuW(menu, MF_STRING, kPauseForAnHour, L"Pause for an hour");
    AppendMenuW(menu, MF_STRING, kResume, L"Resume");
    AppendMenuW(menu, MF_SEPARATOR, 0, nullptr);
    AppendMenuW(menu, MF_STRING, kLeave, L"Lend this machine no more");
    AppendMenuW(menu, MF_STRING, kHide, L"Hide this icon");
    POINT at{};
    GetCursorPos(&at);
    SetForegroundWindow(icon_.hWnd);  // else a click elsewhere does not close the menu
    TrackPopupMenu(menu, TPM_RIGHTBUTTON, at.x, at.y, 0, icon_.hWnd, nullptr);
    DestroyMenu(menu);
  }

  void obey(UINT command) {
    constexpr int kHourSeconds = 3'600;
    if (command == kPauseForAnHour) ask("snooze", kHourSeconds);
    if (command == kResume) ask("resume");
    if (command == kLeave) (void)leave(line_file(), {});  // which closes the icon
    if (command == kHide) DestroyWindow(icon_.hWnd);
  }

  const std::vector<std::string> paths_;
  const HICON working_ = make_disc(0x2e9e4f);
  const HICON resting_ = make_disc(0x9a9a9a);
  NOTIFYICONDATAW icon_{};
  std::string sentence_;
  bool works_ = false;
  bool is_there_ = false;
};

}  // namespace

void close_tray() {
  const HWND window = FindWindowW(kClass, nullptr);
  if (window != nullptr) PostMessageW(window, WM_CLOSE, 0, 0);
}

Error help_session(const std::vector<std::string>& control_paths) {
  if (FindWindowW(kClass, nullptr) != nullptr) {
    return {ErrorCode::kBusy, "the icon is there already"};
  }
  Tray tray(control_paths);
  if (!tray.open()) return {ErrorCode::kNotFound, "this session has no desktop"};
  FreeConsole();  // a window that is open for this program alone closes
  MSG message{};
  while (GetMessageW(&message, nullptr, 0, 0) > 0) DispatchMessageW(&message);
  return {ErrorCode::kFinished, "the icon is closed"};
}

}  // namespace gleaner::volunteer
