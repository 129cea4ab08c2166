#include "volunteer/lend/session_helper.hpp"

#include <X11/Xlib.h>
#include <X11/extensions/scrnsaver.h>
#include <dlfcn.h>
#include <poll.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/time.hpp"
#include "volunteer/lend/control_client.hpp"

namespace gleaner::volunteer {
namespace {

constexpr int kPaceMs = 100;
constexpr Millis kReport{1'000};

// Functions of both libraries; null if the library lacks one.
struct X11 {
  decltype(&XOpenDisplay) open_display = nullptr;
  decltype(&XCloseDisplay) close_display = nullptr;
  decltype(&XScreenSaverQueryExtension) query_extension = nullptr;
  decltype(&XScreenSaverAllocInfo) alloc_info = nullptr;
  decltype(&XScreenSaverQueryInfo) query_info = nullptr;
  decltype(&XFree) free = nullptr;

  [[nodiscard]] bool is_whole() const {
    return open_display && close_display && query_extension && alloc_info && query_info && free;
  }
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

X11 load_x11() {
  X11 x;
  void* base = dlopen("libX11.so.6", RTLD_NOW | RTLD_GLOBAL);
  void* saver = dlopen("libXss.so.1", RTLD_NOW);
  if (base == nullptr || saver == nullptr) return x;
  find(base, "XOpenDisplay", x.open_display);
  find(base, "XCloseDisplay", x.close_display);
  find(base, "XFree", x.free);
  find(saver, "XScreenSaverQueryExtension", x.query_extension);
  find(saver, "XScreenSaverAllocInfo", x.alloc_info);
  find(saver, "XScreenSaverQueryInfo", x.query_info);
  return x;
}

std::string session_name() {
  // NOLINTBEGIN(concurrency-mt-unsafe): one thread
  const char* session = std::getenv("XDG_SESSION_ID");
  const char* display = std::getenv("DISPLAY");
  // NOLINTEND(concurrency-mt-unsafe)
  return session != nullptr ? session : display != nullptr ? display : "x11";
}

std::optional<ControlClient> connect_first(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    auto client = ControlClient::connect(path);
    if (client) return std::move(*client);
  }
  return std::nullopt;
}

}  // namespace

Error help_session(const std::vector<std::string>& control_paths) {
  const X11 x = load_x11();
  if (!x.is_whole()) {
    return {ErrorCode::kInvalidArgument,
            "the X11 libraries are missing: install libx11-6 and libxss1"};
  }
  Display* display = x.open_display(nullptr);
  if (display == nullptr) return {ErrorCode::kIo, "there is no X11 display: is DISPLAY set?"};
  int unused = 0;
  if (x.query_extension(display, &unused, &unused) == 0) {
    x.close_display(display);
    return {ErrorCode::kIo, "this X11 display has no screen-saver extension"};
  }
  std::optional<ControlClient> client = connect_first(control_paths);
  if (!client) {
    x.close_display(display);
    return {ErrorCode::kIo, "no volunteer answers: start it first, or give --control PATH"};
  }
  const std::unique_ptr<XScreenSaverInfo, decltype(x.free)> info(x.alloc_info(), x.free);
  const std::string session = session_name();
  Instant reported{};
  unsigned long idle_before = 0;
  while (x.query_info(display, DefaultRootWindow(display), info.get()) != 0) {
    const Instant now = monotonic_now();
    // A shorter idle time means input since the last query.
    if (info->idle < idle_before || now - reported >= kReport) {
      const nlohmann::json report = {
          {"verb", "session"}, {"session", session}, {"idle_ms", info->idle}};
      if (const auto answer = client->ask(report.dump()); !answer) {
        x.close_display(display);
        return answer.error();
      }
      reported = now;
    }
    idle_before = info->idle;
    (void)poll(nullptr, 0, kPaceMs);
  }
  x.close_display(display);
  return {ErrorCode::kIo, "the X11 display does not tell when it was used"};
}

}  // namespace gleaner::volunteer
