// Which files are handed to machines without Gleaner.
#include "master/see/served_program.hpp"

#include <elf.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <string>

#include "schema/versions.hpp"
#include "tests/unit/storage/temporary_folder.hpp"

namespace gleaner {
namespace {

// The head of a program for this machine type, then a mark.
std::string program(unsigned short machine, std::uint32_t protocol_min,
                    std::uint32_t protocol_max) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_type = ET_DYN;
  header.e_machine = machine;
  const ProgramMark mark{ProgramMark().name, protocol_min, protocol_max};
  std::string bytes(sizeof(header) + 5 + sizeof(mark), '.');
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header) + 5, &mark, sizeof(mark));
  return bytes;
}

Result<ServedProgram> load(const std::string& bytes) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/program";
  std::ofstream(path, std::ios::binary) << bytes;
  return ServedProgram::load(path);
}

std::string refusal(const std::string& bytes) {
  const auto loaded = load(bytes);
  REQUIRE_FALSE(loaded.ok());
  REQUIRE(loaded.error().code == ErrorCode::kInvalidArgument);
  return loaded.error().message;
}

}  // namespace

TEST_CASE("served program: a volunteer's program comes with its SHA-256", "[http]") {
  const std::string bytes = program(EM_X86_64, kProtocolMin, kProtocolMax);
  const auto loaded = load(bytes);
  REQUIRE(loaded.ok());
  REQUIRE(loaded->machine() == "x86-64");
  REQUIRE(loaded->sha256().size() == 64);
  HttpRequest request;
  request.path = "/gleaner-volunteer";
  const auto reply = loaded->answer(request);
  REQUIRE(*reply->body == bytes);
  REQUIRE(reply->etag == "\"" + loaded->sha256() + "\"");
  request.path = "/gleaner-volunteer.sha256";
  REQUIRE(*loaded->answer(request)->body == loaded->sha256() + "  gleaner-volunteer\n");
  request.path = "/";
  REQUIRE_FALSE(loaded->answer(request).has_value());
  REQUIRE(load(program(EM_AARCH64, kProtocolMin, kProtocolMax))->machine() == "aarch64");
}

TEST_CASE("served program: any other file is refused", "[http]") {
  const std::string whole = program(EM_X86_64, kProtocolMin, kProtocolMax);
  REQUIRE_THAT(ServedProgram::load("/nowhere/program").error().message,
               Catch::Contains("/nowhere/program cannot be read"));
  REQUIRE_THAT(refusal(""), Catch::Contains("is not gleaner-volunteer"));
  REQUIRE_THAT(refusal("#!/bin/sh\n" + whole), Catch::Contains("is not gleaner-volunteer"));
  REQUIRE_THAT(refusal(program(EM_386, kProtocolMin, kProtocolMax)),
               Catch::Contains("is not gleaner-volunteer"));
  REQUIRE_THAT(refusal(program(EM_X86_64, 1, 0)), Catch::Contains("is not gleaner-volunteer"));
  REQUIRE_THAT(refusal(whole.substr(0, whole.size() - 1)),
               Catch::Contains("is not gleaner-volunteer"));
  REQUIRE_THAT(refusal(program(EM_X86_64, 1, kProtocolMin - 1)), Catch::Contains("protocol"));
  REQUIRE_THAT(refusal(program(EM_X86_64, kProtocolMax + 1, kProtocolMax + 2)),
               Catch::Contains("protocol"));
  REQUIRE_THAT(refusal(whole + std::string(std::size_t{64} << 20, 'x')),
               Catch::Contains("larger than 64 MiB"));
}

}  // namespace gleaner
