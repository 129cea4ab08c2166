// The one call that programs need: a data set in whatever form, opened packed. A text file is
// packed once; later starts find the packed form beside it and are instant.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/data/atomic_file.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/data/text_reader.hpp"
#include "common/result.hpp"

namespace gleaner {

struct PackOptions {
  TextOptions text;  // text.limits: the dimensions of the training set, when opening the test set
  bool normalize = true;  // rows of Euclidean length 1
  std::string cache_dir;  // instead of beside the file
  // Called now and then while packing: bytes of the text file read, and of how many.
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
  // Sentences for a person: that a cache is made, or why one is made again.
  std::function<void(const std::string&)> on_note;
};

// `path` is text, plain or compressed, or a packed file. With text.limits the dimensions of the
// result are those limits whatever the file announces (a packed file keeps its own), and ids beyond
// them are refused. A cache that is stale or damaged is made again.
Result<std::unique_ptr<PackedDataset>> open_or_pack(const std::string& path,
                                                    const PackOptions& options = {});

// kInvalidData where the file uses ids beyond text.limits.
Result<void> check_limits(const PackedDataset& dataset, const TextOptions& text);

// Packs the text file `source` into `target`. `key` is stored with it.
Result<void> pack_text(const std::string& source, const std::string& target, const std::string& key,
                       const PackOptions& options, AtomicFile::Existing existing);

}  // namespace gleaner
