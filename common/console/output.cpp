#include "common/console/output.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "common/os/process.hpp"

namespace gleaner {
namespace {

// "GLEANER_P_AT_1" of "p_at_1". Member names are letters, digits and underscores.
std::string field_name(const std::string& member) {
  std::string name = "GLEANER_" + member;
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

}  // namespace

Priority priority_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return Priority::kDebug;
    case LogLevel::kInfo:
      return Priority::kInfo;
    case LogLevel::kWarning:
      return Priority::kWarning;
    case LogLevel::kError:
      break;
  }
  return Priority::kError;
}

std::vector<std::string> journal_fields(const std::string& identifier, Priority priority,
                                        std::string_view message, std::string_view event) {
  std::vector<std::string> fields = {fmt::format("MESSAGE={}", message),
                                     fmt::format("PRIORITY={}", static_cast<int>(priority)),
                                     "SYSLOG_IDENTIFIER=" + identifier};
  const auto members = nlohmann::ordered_json::parse(event, nullptr, false);
  if (!members.is_object()) return fields;
  for (const auto& [name, value] : members.items()) {
    if (value.is_null()) continue;
    fields.push_back(field_name(name) + "=" +
                     (value.is_string() ? value.get<std::string>() : value.dump()));
  }
  return fields;
}

std::optional<Journal> Journal::behind(std::FILE* stream, std::string identifier) {
  Send send = os::journal_behind(stream);
  if (!send) return std::nullopt;
  return Journal(std::move(identifier), std::move(send));
}

}  // namespace gleaner
