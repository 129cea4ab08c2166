#include "tools/launch/run_command.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace gleaner {

Result<void> run_command(const std::vector<std::string>& words, const std::string& folder) {
  std::vector<std::string> copies = words;
  std::vector<char*> arguments;
  arguments.reserve(copies.size() + 1);
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  if (const int error = ::posix_spawn_file_actions_init(&actions); error != 0) {
    return Error{ErrorCode::kResources, std::generic_category().message(error)};
  }
  int failed = ::posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  ::pid_t child = 0;
  if (failed == 0) {
    failed =
        ::posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  }
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return Error{ErrorCode::kIo, fmt::format("{} cannot be started: {}", words.front(),
                                             std::generic_category().message(failed))};
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{ErrorCode::kIo, std::generic_category().message(errno)};
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return Error{ErrorCode::kIo,
               WIFEXITED(status)
                   ? fmt::format("{} ended with status {}", words.front(), WEXITSTATUS(status))
                   : fmt::format("{} was ended by signal {}", words.front(), WTERMSIG(status))};
}

}  // namespace gleaner
