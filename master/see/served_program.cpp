#include "master/see/served_program.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <cstring>
#include <fstream>
#include <string_view>
#include <utility>

#include "common/access/sha256.hpp"
#include "schema/versions.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kBytesMax = std::size_t{64} << 20;

Error refused(const std::string& path, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("network.serve_program: {} {}", path, why)};
}

// The program's machine; empty if the text is no program of 64-bit Linux.
std::string machine_of(std::string_view program) {
  Elf64_Ehdr header;
  if (program.size() < sizeof(header)) return {};
  std::memcpy(&header, program.data(), sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB ||
      (header.e_type != ET_DYN && header.e_type != ET_EXEC)) {
    return {};
  }
  return header.e_machine == EM_X86_64    ? "x86-64"
         : header.e_machine == EM_AARCH64 ? "aarch64"
                                          : std::string();
}

// The mark of a volunteer's program. Another program may contain the bare name by chance.
std::optional<ProgramMark> mark_of(std::string_view program) {
  ProgramMark mark;
  const std::string_view name(mark.name.data(), mark.name.size());
  for (std::size_t at = program.find(name); at != std::string_view::npos;
       at = program.find(name, at + 1)) {
    if (program.size() - at < sizeof(mark)) break;
    std::memcpy(&mark, program.data() + at, sizeof(mark));
    if (mark.protocol_min <= mark.protocol_max) return mark;
  }
  return std::nullopt;
}

}  // namespace

Result<ServedProgram> ServedProgram::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kBytesMax + 1, '\0');
  if (!file ||
      (!file.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) && !file.eof())) {
    return refused(path, "cannot be read");
  }
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  if (bytes.size() > kBytesMax) return refused(path, "is larger than 64 MiB");
  std::string machine = machine_of(bytes);
  const std::optional<ProgramMark> mark = mark_of(bytes);
  if (machine.empty() || !mark) {
    return refused(path,
                   "is not gleaner-volunteer for Linux on x86-64 or aarch64: give the file that "
                   "tools/packaging/portable/build makes");
  }
  if (mark->protocol_min > kProtocolMax || mark->protocol_max < kProtocolMin) {
    return refused(path,
                   fmt::format("speaks protocol {} to {} and this master {} to {}: build it "
                               "from the same version",
                               mark->protocol_min, mark->protocol_max, kProtocolMin, kProtocolMax));
  }
  return ServedProgram(std::move(bytes), std::move(machine));
}

ServedProgram::ServedProgram(std::string bytes, std::string machine)
    : bytes_(std::make_shared<const std::string>(std::move(bytes))), machine_(std::move(machine)) {
  Sha256 sha256;
  sha256.update(as_bytes(*bytes_));
  sha256_ = sha256.finish();
}

std::optional<HttpReply> ServedProgram::answer(const HttpRequest& request) const {
  const std::string_view path = request.path;
  if (path == kPath) {
    HttpReply reply;
    reply.type = "application/octet-stream";
    reply.body = bytes_;
    reply.etag = "\"" + sha256_ + "\"";
    return reply;
  }
  if (path == std::string(kPath) + ".sha256") {
    return text_reply(200, kHttpText, sha256_ + "  gleaner-volunteer\n");
  }
  return std::nullopt;
}

}  // namespace gleaner
