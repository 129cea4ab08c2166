#include "tools/dataset/make/dataset_debian.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/data/point_writer.hpp"
#include "tools/dataset/make/dataset_folder.hpp"

namespace gleaner {
namespace {

Result<std::vector<DebianPackage>> read_packages(const DebianFlags& flags) {
  if (!flags.dump.empty()) {
    Result<std::unique_ptr<ByteSource>> source = open_file_source(flags.dump);
    if (!source) return source.error();
    return read_debian_index(std::move(*source));
  }
  Result<std::string> text = dump_debian_index();
  if (!text) return text.error();
  Result<std::unique_ptr<ByteSource>> source = open_memory_source("apt-cache dumpavail", *text);
  if (!source) return source.error();
  return read_debian_index(std::move(*source));
}

std::string part_text(const std::vector<DebianPoint>& part, Dimensions dimensions) {
  std::string text = xc_header(part.size(), dimensions);
  for (const DebianPoint& made : part) append_xc(text, made.point);
  return text;
}

// "hello: example package based on GNU hello"; line i belongs to point i.
std::string points_text(const std::vector<DebianPoint>& part,
                        const std::vector<DebianPackage>& packages) {
  std::string text;
  for (const DebianPoint& made : part) {
    const DebianPackage& package = packages[made.package];
    text += package.name + ": " + package.description + "\n";
  }
  return text;
}

Result<void> write_set(const FolderPaths& paths, DebianSet& set,
                       const std::vector<DebianPackage>& packages, AtomicFile::Existing existing) {
  const Dimensions dimensions{static_cast<std::uint32_t>(set.features.numbered().size()),
                              static_cast<std::uint32_t>(set.labels.size())};
  const WordModel model{WordKind::kDebian, set.train.size(), {}, std::move(set.features)};
  // The training part last: whoever finds it finds the rest.
  Result<void> written = write_names(paths, set.labels, model, existing);
  if (written) written = write_text(paths.test_points, points_text(set.test, packages), existing);
  if (written) written = write_text(paths.train_points, points_text(set.train, packages), existing);
  if (written) written = write_text(paths.test, part_text(set.test, dimensions), existing);
  if (written) written = write_text(paths.train, part_text(set.train, dimensions), existing);
  return written;
}

}  // namespace

Result<void> run_dataset_debian(const DebianFlags& flags) {
  if (!(flags.options.test_share > 0 && flags.options.test_share < 1)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--share {} is not between 0 and 1; 0.2 puts a fifth of the packages "
                             "into the test part",
                             flags.options.test_share)};
  }
  std::error_code error;
  std::filesystem::create_directories(flags.output, error);
  const FolderPaths paths = paths_in(flags.output);
  Result<void> guarded = guard_outputs({paths.train, paths.test, paths.features, paths.labels,
                                        paths.train_points, paths.test_points, paths.words},
                                       flags.force);
  if (!guarded) return guarded;
  Result<std::vector<DebianPackage>> packages = read_packages(flags);
  if (!packages) return packages.error();
  DebianSet set = make_debian_set(*packages, flags.options);
  const std::size_t features = set.features.numbered().size();
  if (set.train.empty() || set.test.empty() || features == 0) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} packages give {} training and {} test examples, too few for a "
                             "data set; run 'apt-get update' to fetch the package index",
                             flags.dump.empty() ? "apt-cache dumpavail" : flags.dump,
                             packages->size(), set.train.size(), set.test.size())};
  }
  Result<void> written = write_set(paths, set, *packages, existing(flags.force));
  if (!written) return written;
  const Json body = {{"written", Json::array({written_json(paths.train, set.train.size()),
                                              written_json(paths.test, set.test.size())})},
                     {"packages", packages->size()},
                     {"features", features},
                     {"labels", set.labels.size()}};
  return print_done(
      flags.json, "dataset debian", flags.output, body,
      fmt::format("{}: {} of {} packages depend on others: {} for training, {} for testing; "
                  "{} features, {} labels\n",
                  flags.output, with_commas(set.train.size() + set.test.size()),
                  with_commas(packages->size()), with_commas(set.train.size()),
                  with_commas(set.test.size()), with_commas(features),
                  with_commas(set.labels.size())));
}

}  // namespace gleaner
