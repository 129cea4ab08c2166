// Windows reports sessions and sleep here, in place of Linux's system bus.
#include <windows.h>
//
#include <netlistmgr.h>
#include <objbase.h>
#include <powrprof.h>
#include <wtsapi32.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "volunteer/lend/system_bus.hpp"
#include "volunteer/lend/watch.hpp"

namespace gleaner::volunteer {
namespace {

// Windows gives programs 2 s before it sleeps.
constexpr std::chrono::milliseconds kHandOver{1'800};
constexpr Millis kAskNetwork{10'000};
constexpr Millis kNobody = Millis::max();

// The beginning of WTSINFOEXW, which older headers lack.
struct SessionState {
  DWORD level;
  alignas(8) ULONG session;
  int state;
  LONG flags;
};

constexpr auto kSessionState = static_cast<WTS_INFO_CLASS>(25);

DWORD own_session() {
  DWORD session = 0;
  (void)ProcessIdToSessionId(GetCurrentProcessId(), &session);
  return session;
}

// Time since the last input in this process's session.
std::optional<Millis> idle_here() {
  LASTINPUTINFO input{sizeof(LASTINPUTINFO), 0};
  if (own_session() == 0 || GetLastInputInfo(&input) == 0) return std::nullopt;
  return Millis(std::int64_t{static_cast<DWORD>(GetTickCount() - input.dwTime)});
}

// A film, a call or a presentation keeps the screen on.
bool is_screen_kept_on() {
  ULONG state = 0;
  return CallNtPowerInformation(SystemExecutionState, nullptr, 0, &state, sizeof state) == 0 &&
         (state & ES_DISPLAY_REQUIRED) != 0;
}

// Asks Windows about a session; null when it does not tell.
template <typename Facts>
std::unique_ptr<const Facts, void (*)(const Facts*)> ask_session(DWORD session,
                                                                 WTS_INFO_CLASS kind) {
  wchar_t* text = nullptr;
  DWORD bytes = 0;
  (void)WTSQuerySessionInformationW(WTS_CURRENT_SERVER_HANDLE, session, kind, &text, &bytes);
  return {reinterpret_cast<const Facts*>(text),
          [](const Facts* facts) { WTSFreeMemory(const_cast<Facts*>(facts)); }};
}

// Time since the session's last input. Nullopt in a locked session, which nobody uses. 0 where the
// last input is unknown, as at the console.
std::optional<Millis> idle_in(DWORD session) {
  const auto state = ask_session<SessionState>(session, kSessionState);
  if (state && state->flags == 0) return std::nullopt;
  const auto info = ask_session<WTSINFOW>(session, WTSSessionInfo);
  if (!info || info->LastInputTime.QuadPart == 0) return Millis(0);
  // In steps of 100 ns.
  return Millis((info->CurrentTime.QuadPart - info->LastInputTime.QuadPart) / 10'000);
}

// The shortest idle time of the other sessions, local or remote; kNobody without such sessions.
// Nullopt when Windows does not tell.
std::optional<Millis> idle_elsewhere() {
  WTS_SESSION_INFOW* sessions = nullptr;
  DWORD count = 0;
  if (WTSEnumerateSessionsW(WTS_CURRENT_SERVER_HANDLE, 0, 1, &sessions, &count) == 0) {
    return std::nullopt;
  }
  Millis least = kNobody;
  for (DWORD i = 0; i < count; ++i) {
    if (sessions[i].State != WTSActive || sessions[i].SessionId == own_session()) continue;
    least = std::min(least, idle_in(sessions[i].SessionId).value_or(kNobody));
  }
  WTSFreeMemory(sessions);
  return least;
}

// Looks the service up at each call: calls are rare, and the service may have restarted.
std::optional<bool> ask_whether_metered() {
  static thread_local const HRESULT is_ready = CoInitializeEx(nullptr, COINIT_MULTITHREADED);
  INetworkCostManager* networks = nullptr;
  if (FAILED(is_ready) || FAILED(CoCreateInstance(__uuidof(NetworkListManager), nullptr, CLSCTX_ALL,
                                                  __uuidof(INetworkCostManager),
                                                  reinterpret_cast<void**>(&networks)))) {
    return std::nullopt;
  }
  DWORD cost = NLM_CONNECTION_COST_UNKNOWN;
  const bool is_told = SUCCEEDED(networks->GetCost(&cost, nullptr));
  networks->Release();
  if (!is_told || cost == NLM_CONNECTION_COST_UNKNOWN) return std::nullopt;
  return (cost & ~DWORD{NLM_CONNECTION_COST_UNRESTRICTED | NLM_CONNECTION_COST_CONGESTED}) != 0;
}

// Calls of Windows 8 and later, which older headers lack.
using OnPower = ULONG(CALLBACK*)(PVOID context, ULONG kind, PVOID setting);

struct PowerCall {
  OnPower function;
  PVOID context;
};

using Register = DWORD(WINAPI*)(DWORD flags, PowerCall* call, HANDLE* registration);
using Unregister = DWORD(WINAPI*)(HANDLE registration);

constexpr DWORD kByCall = 2;

template <typename Function>
Function power_function(const char* name) {
  const HMODULE library = GetModuleHandleW(L"powrprof.dll");
  return reinterpret_cast<Function>(reinterpret_cast<void*>(GetProcAddress(library, name)));
}

}  // namespace

struct SystemBus::Impl {
  Impl() {
    const auto subscribe = power_function<Register>("PowerRegisterSuspendResumeNotification");
    PowerCall call{&on_power, this};
    if (subscribe != nullptr) (void)subscribe(kByCall, &call, &registration);
  }

  ~Impl() {
    const auto end = power_function<Unregister>("PowerUnregisterSuspendResumeNotification");
    if (registration != nullptr && end != nullptr) (void)end(registration);
  }

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  static ULONG CALLBACK on_power(PVOID context, ULONG kind, PVOID /*setting*/) {
    auto& self = *static_cast<Impl*>(context);
    std::unique_lock lock(self.mutex);
    self.is_suspending = kind == PBT_APMSUSPEND;
    self.may_sleep = false;
    if (self.is_suspending) self.changed.wait_for(lock, kHandOver, [&] { return self.may_sleep; });
    return 0;
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool is_suspending = false;
  bool may_sleep = false;
  HANDLE registration = nullptr;
  std::optional<Instant> asked_at;  // about the network
  std::optional<bool> is_metered;
};

SystemBus::SystemBus(Options /*options*/) : impl_(std::make_unique<Impl>()) {}

SystemBus::~SystemBus() = default;

std::optional<UseReading> SystemBus::read(Instant now) {
  if (!impl_->asked_at || now - *impl_->asked_at >= kAskNetwork) {
    impl_->asked_at = now;
    impl_->is_metered = ask_whether_metered();
  }
  if (is_screen_kept_on()) return UseReading{"Windows", now, "a program keeps the screen on"};
  const std::optional<Millis> here = idle_here();
  const std::optional<Millis> elsewhere = idle_elsewhere();
  if (here && *here <= elsewhere.value_or(kNobody)) {
    return UseReading{"Windows", now - *here, "this session"};
  }
  if (!elsewhere) return UseReading{"Windows", std::nullopt, "it does not tell of its sessions"};
  if (*elsewhere == kNobody) return UseReading{"Windows", Instant{}, "nobody is logged in"};
  return UseReading{"Windows", now - *elsewhere, "another session"};
}

bool SystemBus::is_suspending() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->is_suspending;
}

// Somebody can always log in, even where this is a service.
bool SystemBus::has_desktop() const {
  return true;
}

std::optional<bool> SystemBus::is_metered() const {
  return impl_->is_metered;
}

void SystemBus::allow_sleep() {
  const std::lock_guard lock(impl_->mutex);
  impl_->may_sleep = true;
  impl_->changed.notify_all();
}

std::vector<std::unique_ptr<UseSource>> use_sources(const std::string& /*root*/) {
  return {};
}

}  // namespace gleaner::volunteer
