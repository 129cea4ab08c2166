#include "tools/dataset_debian.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "common/dataset/point_writer.hpp"

namespace gleaner {
namespace {

struct OutputPaths {
  std::string train;
  std::string test;
  std::string features;
  std::string labels;
  std::string train_points;
  std::string test_points;
};

OutputPaths paths_in(const std::string& folder) {
  const auto in = [&](const char* name) { return (std::filesystem::path(folder) / name).string(); };
  return {in("train.txt"),  in("test.txt"),         in("features.txt"),
          in("labels.txt"), in("train.points.txt"), in("test.points.txt")};
}

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

Result<void> write_text(const std::string& path, const std::string& text, bool force) {
  Result<std::unique_ptr<TextOutput>> output = TextOutput::create(path);
  if (!output) return output.error();
  Result<void> written = (*output)->write(text);
  return written ? (*output)->commit(existing(force)) : written;
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

std::string names_text(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += name + "\n";
  return text;
}

Result<void> write_set(const OutputPaths& paths, const DebianSet& set,
                       const std::vector<DebianPackage>& packages, bool force) {
  const Dimensions dimensions{static_cast<std::uint32_t>(set.features.size()),
                              static_cast<std::uint32_t>(set.labels.size())};
  // The training part last: whoever finds it finds the rest.
  Result<void> written = write_text(paths.labels, names_text(set.labels), force);
  if (written) written = write_text(paths.features, names_text(set.features), force);
  if (written) written = write_text(paths.test_points, points_text(set.test, packages), force);
  if (written) written = write_text(paths.train_points, points_text(set.train, packages), force);
  if (written) written = write_text(paths.test, part_text(set.test, dimensions), force);
  if (written) written = write_text(paths.train, part_text(set.train, dimensions), force);
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
  const OutputPaths paths = paths_in(flags.output);
  Result<void> guarded = guard_outputs({paths.train, paths.test, paths.features, paths.labels,
                                        paths.train_points, paths.test_points},
                                       flags.force);
  if (!guarded) return guarded;
  Result<std::vector<DebianPackage>> packages = read_packages(flags);
  if (!packages) return packages.error();
  const DebianSet set = make_debian_set(*packages, flags.options);
  if (set.train.empty() || set.test.empty() || set.features.empty()) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: {} packages give {} training and {} test points, too few for a "
                             "data set; run 'apt-get update' to fetch the package index",
                             flags.dump.empty() ? "apt-cache dumpavail" : flags.dump,
                             packages->size(), set.train.size(), set.test.size())};
  }
  Result<void> written = write_set(paths, set, *packages, flags.force);
  if (!written) return written;
  std::fputs(fmt::format("{}: {} of {} packages depend on others: {} for training, {} for testing; "
                         "{} features, {} labels\n",
                         flags.output, with_commas(set.train.size() + set.test.size()),
                         with_commas(packages->size()), with_commas(set.train.size()),
                         with_commas(set.test.size()), with_commas(set.features.size()),
                         with_commas(set.labels.size()))
                 .c_str(),
             stdout);
  return {};
}

}  // namespace gleaner
