#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "common/access/secret_file.hpp"
#include "common/os/process.hpp"
#include "volunteer/lend/verbs.hpp"

namespace gleaner::volunteer {
namespace {

constexpr char kUnit[] = "gleaner-volunteer.service";

Result<void> keep(const std::string& line, const std::string& file) {
  std::error_code ignored;  // the write reports the error
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  return write_secret_file(file, line + "\n", SecretFile::kReplaced);
}

}  // namespace

JoinPlace this_machine(Reach reach) {
  JoinPlace place;
  place.reach = std::move(reach);
  std::error_code ignored;
  place.is_root = os::is_administrator();
  place.has_systemd = std::filesystem::is_directory("/run/systemd/system", ignored);
  for (const char* folder :
       {"/etc/systemd/system/", "/usr/lib/systemd/system/", "/lib/systemd/system/"}) {
    place.has_unit =
        place.has_unit || std::filesystem::exists(std::string(folder) + kUnit, ignored);
  }
  place.run = &os::run_program;
  return place;
}

Result<std::string> join(std::string line, const std::string& file, const JoinPlace& place) {
  if (!place.is_root) {
    return Error{ErrorCode::kIo,
                 "join lends the whole machine and needs root: run `sudo gleaner-volunteer join` "
                 "and paste the line. Without root, `gleaner-volunteer "
                 "gleaner://HOST:PORT/KEY.INVITE` lends it until that command ends"};
  }
  if (line.empty()) std::getline(std::cin, line);
  line = address_in(line);
  const auto address = parse_master_address(line);
  if (!address) return address.error();
  if (auto fits = check_secrecy(*address, false); !fits) return fits.error();
  if (auto kept = keep(line, file); !kept) return kept.error();
  const Result<void> reached = place.reach(*address);
  const std::string done = reach_sentence(*address, reached) +
                           fmt::format("The line is kept in {}, which only root may read.\n", file);
  if (!place.has_unit) {
    return done + fmt::format(
                      "This machine has no {}; this lends it until the command ends:\n"
                      "  gleaner-volunteer --line-file {}\n",
                      kUnit, file);
  }
  if (!place.has_systemd) {
    return done + fmt::format(
                      "systemd does not run here. Where it does, this starts the service:\n"
                      "  systemctl enable --now {}\n",
                      kUnit);
  }
  // A running service takes a new line only when it restarts.
  if (!place.run({"systemctl", "enable", "--quiet", kUnit}) ||
      !place.run({"systemctl", "restart", kUnit})) {
    return Error{ErrorCode::kIo,
                 fmt::format("systemd did not start {0}; `systemctl status {0}` says why", kUnit)};
  }
  return done + fmt::format(
                    "{} {}, and starts with the machine. What it does, and why:\n"
                    "  sudo gleaner-volunteer status\n",
                    kUnit, reached ? "runs" : "tries again until it can");
}

Result<std::string> leave(const std::string& file, const JoinPlace& place) {
  if (!place.is_root) {
    return Error{ErrorCode::kIo,
                 "leave undoes what join did for the whole machine and needs root: run `sudo "
                 "gleaner-volunteer leave`"};
  }
  const bool has_service = place.has_unit && place.has_systemd;
  if (has_service && !place.run({"systemctl", "disable", "--now", "--quiet", kUnit})) {
    return Error{ErrorCode::kIo,
                 fmt::format("systemd did not stop {0}; `systemctl status {0}` says why", kUnit)};
  }
  std::error_code error;
  const bool was_there = std::filesystem::remove(file, error);
  if (error) return Error{ErrorCode::kIo, file + ": " + error.message()};
  if (!was_there) {
    return Error{ErrorCode::kNotFound,
                 "this machine was not lent: there is no line in " + file +
                     (has_service ? std::string("; ") + kUnit + " is stopped all the same" : "")};
  }
  return fmt::format("{}The line in {} is deleted.\n",
                     has_service ? fmt::format("{} has handed over what it held, is stopped, and "
                                               "starts no more.\n",
                                               kUnit)
                                 : std::string(),
                     file);
}

int run_as_started(std::vector<std::string> arguments,
                   const std::function<int(std::vector<std::string>)>& work) {
  return work(std::move(arguments));
}

void note_end(int /*status*/) {}

std::string line_file() {
  return "/etc/gleaner/volunteer.line";
}

}  // namespace gleaner::volunteer
