#include "volunteer/lend/bus_library.hpp"

#include <dlfcn.h>

namespace gleaner::volunteer {

std::optional<BusLibrary> BusLibrary::load(const char* file) {
  void* library = dlopen(file, RTLD_NOW);
  if (library == nullptr) return std::nullopt;
  BusLibrary bus;
  bool is_whole = true;
  const auto find = [&]<typename Function>(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    is_whole = is_whole && function != nullptr;
  };
  find("sd_bus_open_system", bus.open_system);
  find("sd_bus_flush_close_unref", bus.flush_close_unref);
  find("sd_bus_set_method_call_timeout", bus.set_method_call_timeout);
  find("sd_bus_match_signal", bus.match_signal);
  find("sd_bus_add_match", bus.add_match);
  find("sd_bus_process", bus.process);
  find("sd_bus_call_method", bus.call_method);
  find("sd_bus_get_property_string", bus.get_property_string);
  find("sd_bus_get_property_trivial", bus.get_property_trivial);
  find("sd_bus_message_read", bus.message_read);
  find("sd_bus_message_enter_container", bus.message_enter_container);
  find("sd_bus_message_unref", bus.message_unref);
  find("sd_bus_error_free", bus.error_free);
  find("sd_bus_error_has_name", bus.error_has_name);
  return is_whole ? std::optional(bus) : std::nullopt;
}

}  // namespace gleaner::volunteer
