#include "common/data/open_or_pack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "common/data/packed_writer.hpp"

namespace gleaner {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kPointsPerProgress = 1024;

void note(const PackOptions& options, const std::string& sentence) {
  if (options.on_note) options.on_note(sentence);
}

Result<void> copy_points(TextReader& reader, PackedWriter& writer, const PackOptions& options) {
  Point point;
  for (;;) {
    Result<bool> has_point = reader.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) return {};
    if (auto added = writer.add(point); !added) return added;
    if (options.on_progress && reader.points() % kPointsPerProgress == 0) {
      options.on_progress(reader.source().position(), reader.source().total());
    }
  }
}

// Uses a packed file given by name as it is, if it fits the options.
Result<std::unique_ptr<PackedDataset>> open_packed(const std::string& path,
                                                   const PackOptions& options) {
  Result<std::unique_ptr<PackedDataset>> dataset = PackedDataset::open(path);
  if (!dataset) return dataset;
  const PackedSummary summary = (*dataset)->summary();
  if (summary.is_normalized != options.normalize) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}: its rows are {}normalised, but {} ones are asked for; pack the "
                             "text file again with the other option",
                             path, summary.is_normalized ? "" : "not ",
                             options.normalize ? "normalised" : "unchanged")};
  }
  if (auto fits = check_limits(**dataset, options.text); !fits) return fits.error();
  return dataset;
}

// The cache at `path`; null if missing or unusable.
std::unique_ptr<PackedDataset> open_cache(const std::string& path, const std::string& key,
                                          const PackOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) return nullptr;
  Result<std::unique_ptr<PackedDataset>> dataset = PackedDataset::open(path);
  if (!dataset) {
    note(options,
         fmt::format("The cache cannot be used and is made again ({}).", dataset.error().message));
    return nullptr;
  }
  if ((*dataset)->source_key() == key) return std::move(*dataset);
  note(options, fmt::format("The cache {} belongs to an older file or other options and is made "
                            "again.",
                            path));
  return nullptr;
}

// Whether a file can be made beside `path`. Makes the folder first.
bool is_writable(const std::string& path) {
  std::error_code error;
  const fs::path folder = fs::path(path).parent_path();
  if (!folder.empty()) fs::create_directories(folder, error);
  return AtomicFile::create(path).ok();
}

}  // namespace

Result<void> check_limits(const PackedDataset& dataset, const TextOptions& text) {
  if (!text.limits) return {};
  const Dimensions limits = *text.limits, used = dataset.summary().used;
  if (used.features <= limits.features && used.labels <= limits.labels) return {};
  return Error{ErrorCode::kInvalidData,
               fmt::format("{}: expected ids below {} features and {} labels as {} has them, "
                           "found feature ids up to {} and label ids up to {}{}",
                           dataset.path(), limits.features, limits.labels, text.limits_name,
                           std::int64_t{used.features} - 1, std::int64_t{used.labels} - 1,
                           text.limits_remedy)};
}

Result<void> pack_text(const std::string& source, const std::string& target, const std::string& key,
                       const PackOptions& options, AtomicFile::Existing existing) {
  Result<std::unique_ptr<ByteSource>> bytes = open_file_source(source);
  if (!bytes) return bytes.error();
  Result<std::unique_ptr<TextReader>> reader = TextReader::open(std::move(*bytes), options.text);
  if (!reader) return reader.error();
  Result<std::unique_ptr<PackedWriter>> writer = PackedWriter::create(target, options.normalize);
  if (!writer) return writer.error();
  if (auto copied = copy_points(**reader, **writer, options); !copied) return copied;
  const Dimensions dimensions = options.text.limits.value_or((*reader)->dimensions());
  return (*writer)->finish(dimensions, (*reader)->irregularities(), key, existing);
}

Result<std::unique_ptr<PackedDataset>> open_or_pack(const std::string& path,
                                                    const PackOptions& options) {
  if (is_packed_file(path)) return open_packed(path, options);
  Result<std::string> key = source_key(path, options);
  if (!key) return key.error();
  const std::vector<std::string> candidates = cache_candidates(path, options);
  for (const std::string& candidate : candidates) {
    if (auto dataset = open_cache(candidate, *key, options)) return dataset;
  }
  const auto target = std::find_if(candidates.begin(), candidates.end(), is_writable);
  if (target == candidates.end()) {
    return Error{ErrorCode::kIo,
                 fmt::format("{}: there is no folder to keep its packed form in (tried {}); name "
                             "a writable folder as the cache folder",
                             path, fmt::join(candidates, ", "))};
  }
  note(options, fmt::format("Packing {} into {}; this is done once.", path, *target));
  Result<void> packed = pack_text(path, *target, *key, options, AtomicFile::Existing::kReplace);
  if (!packed) return packed.error();
  Result<std::string> key_after = source_key(path, options);
  if (!key_after) return key_after.error();
  if (*key_after != *key) {
    return Error{ErrorCode::kInvalidData,
                 path + ": changed while it was read; start again when it is complete"};
  }
  return PackedDataset::open(*target);
}

}  // namespace gleaner
