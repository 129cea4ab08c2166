// Opens a data set of any form, packed. A text file is packed once; later starts find the packed
// form beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/data/atomic_file.hpp"
#include "common/data/packed_dataset.hpp"
#include "common/data/text_reader.hpp"
#include "common/result.hpp"

namespace gleaner {

struct PackOptions {
  TextOptions text;       // text.limits: dimensions of the training set, to open the test set
  bool normalize = true;  // scale examples to unit length
  std::string cache_dir;  // instead of beside the file
  // Called from time to time while packing, with the bytes of the text file read and in total.
  std::function<void(std::uint64_t done, std::uint64_t total)> on_progress;
  // Takes sentences for people: a cache is made, or why it is made again.
  std::function<void(const std::string&)> on_note;
};

// `path` is text, plain or compressed, or a packed file. With text.limits, these are the dimensions
// of the result, whatever the text file announces (a packed file keeps its own), and larger ids are
// refused. A stale or damaged cache is made again.
Result<std::unique_ptr<PackedDataset>> open_or_pack(const std::string& path,
                                                    const PackOptions& options = {});

// kInvalidData if the file has ids beyond text.limits.
Result<void> check_limits(const PackedDataset& dataset, const TextOptions& text);

// Packs the text file `source` into `target`, together with `key`.
Result<void> pack_text(const std::string& source, const std::string& target, const std::string& key,
                       const PackOptions& options, AtomicFile::Existing existing);

// Identifies the state of the text file (size, time of change, inode) and the options that shape
// the packed form. A few lines of text.
Result<std::string> source_key(const std::string& path, const PackOptions& options);

// Paths of the cache, in the order of search: beside the text file (unless its folder is marked
// read-only), then in the user's cache folder; or only in options.cache_dir.
std::vector<std::string> cache_candidates(const std::string& path, const PackOptions& options);

}  // namespace gleaner
