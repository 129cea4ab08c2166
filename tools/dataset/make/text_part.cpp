#include "tools/dataset/make/text_part.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tools/cli/console.hpp"
#include "tools/dataset/make/dataset_folder.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kFrequentLabels = 5;
constexpr std::size_t kExamplesAsRead = 3;

}  // namespace

Result<std::unique_ptr<TextPart>> TextPart::create(const std::string& path, std::uint64_t points,
                                                   Dimensions dimensions) {
  Result<std::unique_ptr<TextOutput>> set = TextOutput::create(path);
  if (!set) return set.error();
  Result<std::unique_ptr<TextOutput>> names = TextOutput::create(points_path_of(path));
  if (!names) return names.error();
  Result<void> headed = (*set)->write(xc_header(points, dimensions));
  if (!headed) return headed.error();
  return std::unique_ptr<TextPart>(
      new TextPart(path, std::move(*set), std::move(*names), dimensions));
}

Result<void> TextPart::add(const TextRecord& record, const WordModel& model,
                           const Vocabulary& labels) {
  Point point = model.point_of(record.text);
  for (const std::string& tag : record.tags) {
    const auto* label = labels.find(tag);
    unknown_tags_ += label == nullptr;
    if (label != nullptr) point.labels.push_back(label->id);
  }
  std::sort(point.labels.begin(), point.labels.end());
  point.labels.erase(std::unique(point.labels.begin(), point.labels.end()), point.labels.end());
  for (const std::uint32_t label : point.labels) ++points_by_label_[label];
  if (as_read_.size() < kExamplesAsRead && !record.tags.empty()) {
    as_read_.push_back({record.name, record.tags});
  }
  without_labels_ += point.labels.empty();
  without_features_ += point.features.empty();
  ++points_;
  line_.clear();
  append_xc(line_, point);
  Result<void> written = set_->write(line_);
  return written ? names_->write(record.name + "\n") : written;
}

Result<void> TextPart::commit(AtomicFile::Existing existing) {
  Result<void> committed = names_->commit(existing);
  return committed ? set_->commit(existing) : committed;
}

Json TextPart::json() const {
  Json json = written_json(path_, points_);
  json["without_labels"] = without_labels_;
  json["without_features"] = without_features_;
  json["unknown_tags"] = unknown_tags_;
  return json;
}

std::string TextPart::summary() const {
  return fmt::format(
      "{}: {} examples, {} without a known tag, {} without a known word; {} tags "
      "are not labels\n",
      path_, with_commas(points_), with_commas(without_labels_), with_commas(without_features_),
      with_commas(unknown_tags_));
}

std::vector<std::uint32_t> TextPart::frequent_labels() const {
  std::vector<std::uint32_t> labels(points_by_label_.size());
  std::iota(labels.begin(), labels.end(), 0U);
  const std::size_t count = std::min(labels.size(), kFrequentLabels);
  std::ranges::partial_sort(
      labels, labels.begin() + static_cast<std::ptrdiff_t>(count), std::ranges::greater(),
      [&](std::uint32_t label) { return std::pair(points_by_label_[label], ~label); });
  labels.resize(count);
  return labels;
}

Json TextPart::reading_json(const Vocabulary& labels) const {
  Json json = {{"frequent_labels", Json::array()}, {"as_read", Json::array()}};
  for (const std::uint32_t label : frequent_labels()) {
    json["frequent_labels"].push_back({{"label", label},
                                       {"points", points_by_label_[label]},
                                       {"name", labels.numbered()[label]}});
  }
  for (const AsRead& example : as_read_) {
    json["as_read"].push_back({{"name", example.name}, {"tags", example.tags}});
  }
  return json;
}

std::string TextPart::reading(const Vocabulary& labels) const {
  std::vector<std::string> frequent;
  for (const std::uint32_t label : frequent_labels()) {
    frequent.push_back(
        fmt::format("'{}' ({})", labels.numbered()[label], with_commas(points_by_label_[label])));
  }
  std::string text = fmt::format("most frequent labels: {}\n", fmt::join(frequent, ", "));
  for (const AsRead& example : as_read_) {
    text += fmt::format("as read: {} | '{}'\n", example.name, fmt::join(example.tags, "', '"));
  }
  return text;
}

}  // namespace gleaner
