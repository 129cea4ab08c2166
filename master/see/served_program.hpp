// The gleaner-volunteer that the master serves to machines without Gleaner, with its checksum.
// Immutable once loaded.
#pragma once

#include <optional>
#include <string>

#include "common/http/http_server.hpp"
#include "common/result.hpp"

namespace gleaner {

class ServedProgram {
 public:
  // Reads the file, at most 64 MiB. An error unless it is a volunteer's program for Linux with
  // which this master could work.
  static Result<ServedProgram> load(const std::string& path);

  static constexpr const char* kPath = "/gleaner-volunteer";

  // The file at kPath, its checksum at kPath.sha256 in the form of sha256sum; nullopt at other
  // paths.
  [[nodiscard]] std::optional<HttpReply> answer(const HttpRequest& request) const;

  // 64 hexadecimal digits.
  [[nodiscard]] const std::string& sha256() const { return sha256_; }

  // "x86-64" or "aarch64".
  [[nodiscard]] const std::string& machine() const { return machine_; }

 private:
  ServedProgram(std::string bytes, std::string machine);

  SharedText bytes_;
  std::string machine_;
  std::string sha256_;
};

}  // namespace gleaner
