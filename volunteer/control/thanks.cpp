#include "volunteer/control/thanks.hpp"

#include <filesystem>
#include <fstream>

#include "common/console/terminal.hpp"
#include "common/dataset/atomic_file.hpp"

namespace gleaner::volunteer {
namespace {

constexpr std::size_t kLinesMax = 100;

std::string path_in(const std::string& folder) {
  return (std::filesystem::path(folder) / "finished").string();
}

}  // namespace

Result<void> keep_thanks(const std::string& folder, const std::string& master,
                         const std::string& line) {
  if (folder.empty()) return {};
  std::vector<std::string> lines = kept_thanks(folder);
  lines.push_back(line + " (" + master + ")");
  if (lines.size() > kLinesMax) lines.erase(lines.begin());
  std::string text;
  for (const std::string& one : lines) text += one + "\n";
  auto file = AtomicFile::create(path_in(folder));
  if (!file) return file.error();
  if (auto written = (*file)->write(text.data(), text.size()); !written) return written.error();
  return (*file)->commit(AtomicFile::Existing::kReplace);
}

std::vector<std::string> kept_thanks(const std::string& folder) {
  std::vector<std::string> lines;
  if (folder.empty()) return lines;
  std::ifstream file(path_in(folder));
  for (std::string line; lines.size() < kLinesMax && std::getline(file, line);) {
    lines.push_back(printable(line));
  }
  return lines;
}

}  // namespace gleaner::volunteer
