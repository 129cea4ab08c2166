#include "tools/training_points.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/dataset/open_or_pack.hpp"
#include "common/dataset/packed_writer.hpp"
#include "storage/identity.hpp"
#include "tools/dataset_console.hpp"
#include "tools/predict_points.hpp"

namespace gleaner {
namespace {

// All points of a file, as training has or would have seen them.
struct PointList {
  std::vector<std::uint64_t> label_begin = {0};
  std::vector<std::uint32_t> labels;
  std::vector<std::uint64_t> feature_begin = {0};
  std::vector<std::uint32_t> features;
  std::vector<float> values;

  void add(const Point& point) {
    labels.insert(labels.end(), point.labels.begin(), point.labels.end());
    label_begin.push_back(labels.size());
    features.insert(features.end(), point.features.begin(), point.features.end());
    values.insert(values.end(), point.values.begin(), point.values.end());
    feature_begin.push_back(features.size());
  }

  [[nodiscard]] ExampleView at(std::uint32_t i) const {
    const auto part = [i](const auto& all, const std::vector<std::uint64_t>& begin) {
      return std::span(all).subspan(begin[i], begin[i + std::size_t{1}] - begin[i]);
    };
    return {part(labels, label_begin), part(features, feature_begin), part(values, feature_begin)};
  }
};

Result<Voters> read_file(const std::string& path, const TextOptions& options, bool is_normalised,
                         std::uint32_t count) {
  if (path == kStandardInput) {
    return Error{ErrorCode::kInvalidArgument, "--neighbours wants a file: standard input is none"};
  }
  auto points = PredictPoints::open(path, options, {});
  if (!points) return points.error();
  const bool normalise = is_normalised && !(*points)->is_normalised();
  PointList list;
  std::uint32_t read = 0;
  IndexedPoint point;
  ProgressLine progress("Reading");
  for (;; ++read) {
    const Result<bool> has_point = (*points)->next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) break;
    if (read == std::numeric_limits<std::uint32_t>::max()) {
      return Error{ErrorCode::kInvalidData, path + ": it has too many points to be searched"};
    }
    if (normalise) normalize_row(point.point.values);
    list.add(point.point);
    progress.show(read, (*points)->announced_points().value_or(0), "neighbours");
  }
  return Voters({read, options.limits->features, [&list](std::uint32_t i) { return list.at(i); }},
                count);
}

// What a run was trained on, from where its master last found it.
Result<std::unique_ptr<PackedDataset>> find_own(const RunIdentity& identity, bool is_normalised) {
  const auto setting = [&](const char* key) {
    const auto found = identity.settings.find(key);
    return found == identity.settings.end() ? std::string() : found->second;
  };
  const std::string path = setting(kTrainingFileKey);
  if (path.empty()) return Error{ErrorCode::kNotFound, "its store does not say where they are"};
  PackOptions options;
  options.normalize = is_normalised;
  options.cache_dir = setting(kCacheFolderKey);
  auto train = open_or_pack(path, options);
  if (!train) return train;
  if (auto intact = (*train)->verify_all(); !intact) return intact.error();
  if ((*train)->fingerprint() == identity.model.data_fingerprint) return train;
  return Error{ErrorCode::kInvalidData,
               path + ": it is not the file any more that the run was trained on"};
}

}  // namespace

Result<std::optional<Voters>> open_voters(const std::string& flag, const TextOptions& options,
                                          StoredModel& model,
                                          const std::function<void(const std::string&)>& on_note) {
  std::optional<Voters> voters;
  const std::uint32_t count = model.config().neighbours;
  if (flag == kNoNeighbours || (flag.empty() && count == 0)) return voters;
  if (!flag.empty()) {
    auto read = read_file(flag, options, model.is_normalised(),
                          count > 0 ? count : Neighbours::kCountUsual);
    if (!read) return read.error();
    voters.emplace(std::move(*read));
    voters->embed(model.input_layer());
    return voters;
  }
  const auto train = find_own(model.run().identity(), model.is_normalised());
  if (train) {
    voters.emplace(training_points(**train), count);
    voters->embed(model.input_layer());
  } else {
    on_note(
        fmt::format("The network answers alone, without the votes of training points ({}): "
                    "--neighbours FILE names the training file, --neighbours {} does without.",
                    train.error().message, kNoNeighbours));
  }
  return voters;
}

void note_on_stderr(const std::string& sentence) {
  std::fprintf(stderr, "gleaner: %s\n", sentence.c_str());
}

}  // namespace gleaner
