// libsystemd's functions for message buses, loaded while the program runs: a machine without that
// library runs the same program, and learns less of its owner. Included by system_bus.cpp alone.
#pragma once

#include <systemd/sd-bus.h>

#include <optional>

namespace gleaner::volunteer {

// Each member NAME is the function sd_bus_NAME.
struct BusLibrary {
  decltype(&sd_bus_open_system) open_system = nullptr;
  decltype(&sd_bus_flush_close_unref) flush_close_unref = nullptr;
  decltype(&sd_bus_set_method_call_timeout) set_method_call_timeout = nullptr;
  decltype(&sd_bus_match_signal) match_signal = nullptr;
  decltype(&sd_bus_add_match) add_match = nullptr;
  decltype(&sd_bus_process) process = nullptr;
  decltype(&sd_bus_call_method) call_method = nullptr;
  decltype(&sd_bus_get_property_string) get_property_string = nullptr;
  decltype(&sd_bus_get_property_trivial) get_property_trivial = nullptr;
  decltype(&sd_bus_message_read) message_read = nullptr;
  decltype(&sd_bus_message_enter_container) message_enter_container = nullptr;
  decltype(&sd_bus_message_unref) message_unref = nullptr;
  decltype(&sd_bus_error_free) error_free = nullptr;
  decltype(&sd_bus_error_has_name) error_has_name = nullptr;

  // nullopt where the system's loader does not find `file`, or a function in it. What is loaded
  // stays loaded.
  static std::optional<BusLibrary> load(const char* file);
};

}  // namespace gleaner::volunteer
