#include "volunteer/lend/system_bus.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

namespace gleaner::volunteer {
namespace {

constexpr char kLogin[] = "org.freedesktop.login1";
constexpr char kLoginPath[] = "/org/freedesktop/login1";
constexpr char kManager[] = "org.freedesktop.login1.Manager";
constexpr char kSession[] = "org.freedesktop.login1.Session";
constexpr char kNetwork[] = "org.freedesktop.NetworkManager";
constexpr char kNetworkPath[] = "/org/freedesktop/NetworkManager";
constexpr Millis kAskAgain{3'000};
constexpr Millis kConnectAgain{30'000};
constexpr std::uint64_t kCallUs = 1'000'000;

// libsystemd's functions for message buses: each NAME is sd_bus_NAME.
// clang-format off
#define BUS_FUNCTIONS(F) \
  F(open_system) F(flush_close_unref) F(set_method_call_timeout) F(match_signal) F(add_match) \
  F(process) F(call_method) F(get_property_string) F(get_property_trivial) F(message_read) \
  F(message_enter_container) F(message_unref) F(error_free) F(error_has_name)

// clang-format on

// Loaded at run time: without libsystemd the program runs too, and learns less of its owner.
struct BusLibrary {
#define BUS_MEMBER(name) decltype(&sd_bus_##name) name = nullptr;
  BUS_FUNCTIONS(BUS_MEMBER)
#undef BUS_MEMBER

  // Nullopt when the loader does not find `file` or a function in it. The library stays loaded.
  static std::optional<BusLibrary> load(const char* file) {
    void* library = dlopen(file, RTLD_NOW);
    if (library == nullptr) return std::nullopt;
    BusLibrary bus;
    bool is_whole = true;
#define BUS_FIND(name)                                                              \
  bus.name = reinterpret_cast<decltype(bus.name)>(dlsym(library, "sd_bus_" #name)); \
  is_whole = is_whole && bus.name != nullptr;
    BUS_FUNCTIONS(BUS_FIND)
#undef BUS_FIND
    return is_whole ? std::optional(bus) : std::nullopt;
  }
};

struct Unref {
  const BusLibrary* library = nullptr;

  void operator()(sd_bus* bus) const { library->flush_close_unref(bus); }

  void operator()(sd_bus_message* message) const { library->message_unref(message); }
};

using Bus = std::unique_ptr<sd_bus, Unref>;
using Reply = std::unique_ptr<sd_bus_message, Unref>;

// An error's name and text, freed at the end.
struct BusError {
  const BusLibrary& library;
  sd_bus_error error = SD_BUS_ERROR_NULL;

  explicit BusError(const BusLibrary& with) : library(with) {}

  BusError(const BusError&) = delete;
  BusError& operator=(const BusError&) = delete;

  ~BusError() { library.error_free(&error); }

  // Nobody owns the name, and nothing can be started that would.
  [[nodiscard]] bool is_absence() const {
    return library.error_has_name(&error, SD_BUS_ERROR_SERVICE_UNKNOWN) != 0 ||
           library.error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER) != 0;
  }
};

std::optional<std::string> text_property(const Bus& bus, const std::string& path,
                                         const char* interface, const char* name) {
  const BusLibrary& library = *bus.get_deleter().library;
  BusError error(library);
  char* text = nullptr;
  if (library.get_property_string(bus.get(), kLogin, path.c_str(), interface, name, &error.error,
                                  &text) < 0) {
    return std::nullopt;
  }
  std::string result(text);
  std::free(text);  // NOLINT: the library's allocation
  return result;
}

template <typename T>
std::optional<T> property(const Bus& bus, const char* service, const std::string& path,
                          const char* interface, const char* name, char type) {
  const BusLibrary& library = *bus.get_deleter().library;
  BusError error(library);
  T value{};
  if (library.get_property_trivial(bus.get(), service, path.c_str(), interface, name, &error.error,
                                   type, &value) < 0) {
    return std::nullopt;
  }
  return value;
}

bool names_idle(const std::string& inhibited) {
  return (":" + inhibited + ":").find(":idle:") != std::string::npos;
}

}  // namespace

struct SystemBus::Impl {
  Options options;
  std::optional<BusLibrary> library;
  Bus bus;
  std::optional<Instant> connected_at;  // or tried to
  std::optional<Instant> asked_at;
  bool is_dirty = true;
  bool has_seen_login = false;
  bool is_suspending = false;
  bool has_desktop = false;
  std::optional<bool> is_metered;
  int sleep_lock = -1;
  std::map<std::string, Instant> locked_at;  // sessions
  // From the last answer: present use, or the last use; nullopt: unknown.
  bool is_in_use = false;
  Instant seen_in_use{};
  std::optional<Instant> last_use;
  std::string detail;

  ~Impl() { let_sleep(); }

  // logind runs if its folder of sessions exists.
  [[nodiscard]] std::optional<UseReading> without_library() const {
    std::error_code ignored;
    if (!std::filesystem::exists(options.root + "/run/systemd/sessions", ignored)) {
      return std::nullopt;
    }
    return UseReading{"logind", std::nullopt,
                      "it cannot be asked without " + options.library + "; install libsystemd0"};
  }

  void let_sleep() {
    if (sleep_lock >= 0) close(sleep_lock);
    sleep_lock = -1;
  }

  // Delays sleep as long as logind allows, so that shards can be handed over first.
  void delay_sleep() {
    if (sleep_lock >= 0) return;
    BusError error(*library);
    sd_bus_message* raw = nullptr;
    if (library->call_method(bus.get(), kLogin, kLoginPath, kManager, "Inhibit", &error.error, &raw,
                             "ssss", "sleep", "gleaner-volunteer", "hands over its shards",
                             "delay") < 0) {
      return;
    }
    const Reply reply(raw, {&*library});
    int descriptor = -1;
    if (library->message_read(raw, "h", &descriptor) >= 0) {
      sleep_lock = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
    }
  }

  static int on_change(sd_bus_message*, void* self, sd_bus_error*) {
    static_cast<Impl*>(self)->is_dirty = true;
    return 0;
  }

  static int on_sleep(sd_bus_message* message, void* self, sd_bus_error*) {
    int begins = 0;
    Impl& state = *static_cast<Impl*>(self);
    if (state.library->message_read(message, "b", &begins) >= 0) {
      state.is_suspending = begins != 0;
      if (begins == 0) state.delay_sleep();
    }
    return 0;
  }

  void connect(Instant now) {
    if (connected_at && now - *connected_at < kConnectAgain) return;
    connected_at = now;
    sd_bus* raw = nullptr;
    if (library->open_system(&raw) < 0) return;
    bus = Bus(raw, {&*library});
    (void)library->set_method_call_timeout(raw, kCallUs);
    (void)library->match_signal(raw, nullptr, kLogin, kLoginPath, kManager, "PrepareForSleep",
                                &on_sleep, this);
    (void)library->add_match(raw, nullptr,
                             "type='signal',sender='org.freedesktop.login1',"
                             "path_namespace='/org/freedesktop/login1'",
                             &on_change, this);
    is_dirty = true;
    delay_sleep();
  }

  // Takes in signals. The bus may be gone afterwards.
  void take_signals() {
    while (true) {
      const int progress = library->process(bus.get(), nullptr);
      if (progress == 0) return;
      if (progress < 0) {
        let_sleep();
        bus.reset();
        return;
      }
    }
  }

  void ask(Instant now) {
    is_dirty = false;
    asked_at = now;
    const auto metered =
        property<std::uint32_t>(bus, kNetwork, kNetworkPath, kNetwork, "Metered", 'u');
    // 1 and 3: yes, known or guessed; 2 and 4: no.
    is_metered = metered && *metered != 0 ? std::optional(*metered % 2 == 1) : std::nullopt;
    is_in_use = false;
    last_use = Instant{};
    detail = "no graphical session";
    BusError error(*library);
    sd_bus_message* raw = nullptr;
    if (library->call_method(bus.get(), kLogin, kLoginPath, kManager, "ListSessions", &error.error,
                             &raw, "") < 0) {
      has_seen_login = has_seen_login || !error.is_absence();
      last_use.reset();
      detail = "logind does not answer";
      return;
    }
    const Reply reply(raw, {&*library});
    has_seen_login = true;
    ask_sessions(raw, now);
    const auto inhibited = text_property(bus, kLoginPath, kManager, "BlockInhibited");
    if (!inhibited) {
      last_use.reset();
      detail = "logind does not tell what keeps the machine awake";
    } else if (names_idle(*inhibited)) {
      is_in_use = true;
      detail = "something keeps it awake, a film for instance";
    }
  }

  void ask_sessions(sd_bus_message* sessions, Instant now) {
    const std::set<std::string> others =
        options.told_elsewhere ? options.told_elsewhere() : std::set<std::string>{};
    std::map<std::string, Instant> locked;
    if (library->message_enter_container(sessions, 'a', "(susso)") < 0) return;
    const char *id = nullptr, *user = nullptr, *seat = nullptr, *path = nullptr;
    std::uint32_t uid = 0;
    while (library->message_read(sessions, "(susso)", &id, &uid, &user, &seat, &path) > 0) {
      const auto type = text_property(bus, path, kSession, "Type");
      if (!type) {
        know_nothing(id);
        continue;
      }
      if (*type != "x11" && *type != "wayland" && *type != "mir") continue;
      has_desktop = true;
      const auto kind = text_property(bus, path, kSession, "Class");
      const auto state = text_property(bus, path, kSession, "State");
      if (!kind || !state) know_nothing(id);
      if (!kind || !state || *kind != "user" || *state == "closing" || others.contains(id)) {
        continue;
      }
      if (const auto lock = property<int>(bus, kLogin, path, kSession, "LockedHint", 'b');
          lock && *lock != 0) {
        const auto before = locked_at.find(id);
        note_use(locked[id] = before == locked_at.end() ? now : before->second, id);
        continue;
      }
      const auto idle = property<int>(bus, kLogin, path, kSession, "IdleHint", 'b');
      const auto since = property<std::uint64_t>(bus, kLogin, path, kSession, "IdleSinceHint", 't');
      if (!idle || !since) {
        know_nothing(id);
        continue;
      }
      if (*idle == 0) {
        is_in_use = true;
        detail = std::string("session ") + id;
        continue;
      }
      const std::int64_t age_s =
          std::max<std::int64_t>(wall_seconds() - static_cast<std::int64_t>(*since / 1'000'000), 0);
      note_use(now - std::chrono::duration_cast<Micros>(std::chrono::seconds(age_s)), id);
    }
    locked_at = std::move(locked);
  }

  // The session may have just ended. Until that is known, its use counts as unknown.
  void know_nothing(const char* session) {
    last_use.reset();
    if (!is_in_use) detail = std::string("logind does not describe session ") + session;
  }

  void note_use(Instant use, const char* session) {
    if (!last_use || use <= *last_use) return;
    last_use = use;
    if (!is_in_use) detail = std::string("session ") + session;
  }
};

SystemBus::SystemBus(Options options) : impl_(std::make_unique<Impl>()) {
  impl_->library = BusLibrary::load(options.library.c_str());
  impl_->options = std::move(options);
}

SystemBus::~SystemBus() = default;

std::optional<UseReading> SystemBus::read(Instant now) {
  Impl& state = *impl_;
  if (!state.library) return state.without_library();
  if (!state.bus) state.connect(now);
  if (state.bus) state.take_signals();
  if (!state.bus) {
    if (!state.has_seen_login) return std::nullopt;
    return UseReading{"logind", std::nullopt, "the system's message bus is gone"};
  }
  if (state.is_dirty || !state.asked_at || now - *state.asked_at >= kAskAgain) state.ask(now);
  if (!state.has_seen_login) return std::nullopt;
  if (state.is_in_use) state.seen_in_use = now;
  if (!state.last_use && !state.is_in_use) return UseReading{"logind", std::nullopt, state.detail};
  // logind forgets a use that has just ended, for instance a film. `seen_in_use` remembers it.
  return UseReading{"logind", std::max(state.last_use.value_or(Instant{}), state.seen_in_use),
                    state.detail};
}

bool SystemBus::is_suspending() const {
  return impl_->is_suspending;
}

bool SystemBus::has_desktop() const {
  return impl_->has_desktop;
}

std::optional<bool> SystemBus::is_metered() const {
  return impl_->is_metered;
}

void SystemBus::allow_sleep() {
  impl_->let_sleep();
}

}  // namespace gleaner::volunteer
