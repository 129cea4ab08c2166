#include "master/console/join_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gleaner {

std::string command_for_others(const Listening& listening) {
  const bool has_invite = listening.join.find("://") != std::string::npos;
  if (!listening.is_trusted || !has_invite) return {};
  return "gleaner invite create " + listening.store + " --reusable";
}

std::string join_text(const Listening& listening) {
  if (listening.join.empty()) {
    return fmt::format(
        "Listening on {}. No invite is open: `gleaner invite create STORE` makes one",
        listening.address);
  }
  const std::string others = command_for_others(listening);
  std::string text =
      fmt::format("Listening on {}. {} with:\n  gleaner-volunteer {}", listening.address,
                  others.empty() ? "Volunteers join" : "Your own machines join", listening.join);
  if (!others.empty()) {
    text += fmt::format(
        "\nKeep this line to yourself: nobody checks the work of machines that join by it. For "
        "other people:\n  {}",
        others);
  }
  if (!listening.other_hosts.empty()) {
    text += fmt::format("\nWhere that host is not reached, --advertise names another: {}",
                        fmt::join(listening.other_hosts, ", "));
  }
  return text;
}

}  // namespace gleaner
