#include "tools/dataset/make/dataset_folder.hpp"

#include <filesystem>

#include "common/data/point_writer.hpp"

namespace gleaner {
namespace {

std::string lines(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

}  // namespace

FolderPaths paths_in(const std::string& folder) {
  const auto in = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  return {in("train.txt"),        in("test.txt"),        in("features.txt"), in("labels.txt"),
          in("train.points.txt"), in("test.points.txt"), in(kWordModelFile)};
}

std::string points_path_of(const std::string& set_path) {
  std::filesystem::path path(set_path);
  if (path.extension() == ".gz" || path.extension() == ".zst") path.replace_extension();
  return path.replace_extension(".points.txt").string();
}

Result<void> write_text(const std::string& path, const std::string& text,
                        AtomicFile::Existing existing) {
  Result<std::unique_ptr<TextOutput>> output = TextOutput::create(path);
  if (!output) return output.error();
  Result<void> written = (*output)->write(text);
  return written ? (*output)->commit(existing) : written;
}

Result<void> write_names(const FolderPaths& paths, const std::vector<std::string>& labels,
                         const WordModel& model, AtomicFile::Existing existing) {
  Result<void> written = write_text(paths.labels, lines(labels), existing);
  if (written) written = write_text(paths.features, lines(model.words.numbered()), existing);
  if (written) written = write_text(paths.words, word_model_json(model), existing);
  return written;
}

}  // namespace gleaner
