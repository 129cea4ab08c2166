// The verbs of `gleaner dataset` within a test.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "common/data/text_reader.hpp"
#include "tests/unit/common/data/dataset_files.hpp"
#include "tools/cli/verbs.hpp"
#include "tools/dataset/dataset_command.hpp"

namespace gleaner::test {

// Runs `gleaner dataset ...` in this process with stdout and stderr in files.
struct Run {
  int status = 0;
  std::string out;
  std::string err;
};

inline Run run(const TempFolder& folder, std::vector<std::string> arguments) {
  std::fflush(stdout);
  std::fflush(stderr);
  const int old_out = ::dup(STDOUT_FILENO);
  const int old_err = ::dup(STDERR_FILENO);
  const std::string out_path = folder.file("stdout");
  const std::string err_path = folder.file("stderr");
  const int out = ::open(out_path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  const int err = ::open(err_path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  Run result;
  CLI::App app("gleaner");
  add_dataset_commands(app, result.status);
  arguments.insert(arguments.begin(), "dataset");
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    result.status = app.exit(error) == 0 ? 0 : 2;
  }
  std::fflush(stdout);
  std::fflush(stderr);
  ::dup2(old_out, STDOUT_FILENO);
  ::dup2(old_err, STDERR_FILENO);
  for (const int fd : {old_out, old_err, out, err}) ::close(fd);
  result.out = read_file(out_path);
  result.err = read_file(err_path);
  std::filesystem::remove(out_path);
  std::filesystem::remove(err_path);
  return result;
}

inline std::vector<Point> read_points(const std::string& path) {
  auto source = std::move(open_file_source(path)).value();
  auto reader = std::move(TextReader::open(std::move(source), {})).value();
  std::vector<Point> points;
  Point point;
  while (*reader->next(point)) points.push_back(point);
  return points;
}

}  // namespace gleaner::test
