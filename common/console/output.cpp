#include "common/console/output.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

// Where in these sources an entry was made is nothing to its reader.
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

namespace gleaner {
namespace {

// Without it libsystemd would drop all entries and say nothing: a container may hide it.
constexpr const char* kSocket = "/run/systemd/journal/socket";

// "GLEANER_P_AT_1" of "p_at_1". Names of members are letters, digits and underscores.
std::string field_name(const std::string& member) {
  std::string name = "GLEANER_" + member;
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

bool leads_to_journal(std::FILE* stream) {
  const char* named = std::getenv("JOURNAL_STREAM");  // NOLINT(concurrency-mt-unsafe): one thread

  struct stat file {};

  return named != nullptr && fstat(fileno(stream), &file) == 0 &&
         names_file(named, file.st_dev, file.st_ino);
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

bool names_file(std::string_view journal_stream, std::uint64_t device, std::uint64_t inode) {
  return journal_stream == fmt::format("{}:{}", device, inode);
}

std::optional<Journal> Journal::behind(std::FILE* stream, std::string identifier) {
  if (!leads_to_journal(stream) || access(kSocket, W_OK) != 0) return std::nullopt;
  void* const library = dlopen("libsystemd.so.0", RTLD_NOW);
  if (library == nullptr) return std::nullopt;
  const auto send =
      reinterpret_cast<decltype(&sd_journal_sendv)>(dlsym(library, "sd_journal_sendv"));
  if (send == nullptr) return std::nullopt;
  return Journal(std::move(identifier), [send](const std::vector<std::string>& fields) {
    std::vector<iovec> parts;
    for (const std::string& field : fields) {
      // The library reads them only.
      parts.push_back({const_cast<char*>(field.data()), field.size()});
    }
    (void)send(parts.data(), static_cast<int>(parts.size()));
  });
}

}  // namespace gleaner
