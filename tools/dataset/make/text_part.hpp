// A part of a data set of texts while it is written: examples, and their names beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/data/point_writer.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/records/text_records.hpp"

namespace gleaner {

class TextPart {
 public:
  static Result<std::unique_ptr<TextPart>> create(const std::string& path, std::uint64_t points,
                                                  Dimensions dimensions);

  Result<void> add(const TextRecord& record, const WordModel& model, const Vocabulary& labels);

  // The points last: whoever finds them finds the rest.
  Result<void> commit(AtomicFile::Existing existing);

  [[nodiscard]] std::uint64_t points() const { return points_; }

  [[nodiscard]] Json json() const;

  // A line of output.
  [[nodiscard]] std::string summary() const;

  // The most frequent labels and a few examples with their tags, so that a person sees whether the
  // source was read as it was meant: in JSON, and as lines.
  [[nodiscard]] Json reading_json(const Vocabulary& labels) const;
  [[nodiscard]] std::string reading(const Vocabulary& labels) const;

 private:
  TextPart(std::string path, std::unique_ptr<TextOutput> set, std::unique_ptr<TextOutput> names,
           Dimensions dimensions)
      : path_(std::move(path)),
        set_(std::move(set)),
        names_(std::move(names)),
        points_by_label_(dimensions.labels) {}

  [[nodiscard]] std::vector<std::uint32_t> frequent_labels() const;

  struct AsRead {
    std::string name;
    std::vector<std::string> tags;
  };

  std::string path_;
  std::unique_ptr<TextOutput> set_;
  std::unique_ptr<TextOutput> names_;
  std::string line_;
  std::uint64_t points_ = 0;
  std::uint64_t without_labels_ = 0;
  std::uint64_t without_features_ = 0;
  std::uint64_t unknown_tags_ = 0;
  std::vector<std::uint32_t> points_by_label_;
  std::vector<AsRead> as_read_;
};

}  // namespace gleaner
