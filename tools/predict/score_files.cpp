#include "tools/predict/score_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "common/data/byte_source.hpp"
#include "common/data/point_writer.hpp"
#include "storage/keep/model_file.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {
namespace {

Result<void> write_npz(const std::string& path, std::span<const RankedExample> examples,
                       std::uint32_t labels) {
  std::uint64_t entries = 0;
  for (const RankedExample& example : examples) entries += example.ranked.size();
  auto file = ModelFile::create(path, ModelFileForm::kNpz,
                                {{"indptr", TensorType::kUint32, {examples.size() + 1}},
                                 {"indices", TensorType::kUint32, {entries}},
                                 {"data", TensorType::kFloat64, {entries}},
                                 {"shape", TensorType::kUint32, {2}}},
                                {});
  if (!file) return file.error();
  const auto put = [&file](std::size_t tensor, std::uint64_t at, const auto& value) {
    std::memcpy((*file)->data(tensor).data() + at * sizeof(value), &value, sizeof(value));
  };
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < examples.size(); ++i) {
    put(0, i, at);
    for (const ScoredLabel& scored : examples[i].ranked) {
      put(1, at, scored.label);
      put(2, at++, probability_of(scored.logit));
    }
  }
  put(0, examples.size(), at);
  put(3, 0, static_cast<std::uint32_t>(examples.size()));
  put(3, 1, labels);
  return (*file)->finish();
}

bool is_trec(const std::string& path) {
  return path.ends_with(".run") || path.ends_with(".trec");
}

std::string score_line(std::size_t example, std::span<const ScoredLabel> ranked, bool trec) {
  std::string line;
  for (std::size_t k = 0; k < ranked.size(); ++k) {
    const double probability = probability_of(ranked[k].logit);
    line += trec ? fmt::format("{} Q0 {} {} {:.12g} gleaner\n", example, ranked[k].label, k + 1,
                               probability)
                 : fmt::format("{}{}:{:.12g}", k == 0 ? "" : " ", ranked[k].label, probability);
  }
  return trec ? line : line + "\n";
}

struct LabelFigures {
  std::uint64_t truths = 0, in_five = 0, predicted = 0, right = 0;
};

std::string quotient(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? ""
                    : fmt::format("{:.6f}", static_cast<double>(part) / static_cast<double>(whole));
}

}  // namespace

Result<std::vector<FilteredPair>> read_filter(const std::string& path) {
  auto source = open_file_source(path);
  if (!source) return source.error();
  LineReader lines(std::move(*source));
  std::vector<FilteredPair> pairs;
  std::string_view line;
  for (;;) {
    const Result<bool> has_line = lines.next(line);
    if (!has_line) return has_line.error();
    if (!*has_line) break;
    FilteredPair pair;
    const char* const end = line.data() + line.size();
    const auto example = std::from_chars(line.data(), end, pair.example);
    const char* at = example.ptr;
    while (at != end && (*at == ' ' || *at == '\t')) ++at;
    const auto label = std::from_chars(at, end, pair.label);
    if (example.ec != std::errc() || label.ec != std::errc() || label.ptr != end) {
      return Error{ErrorCode::kInvalidData,
                   fmt::format("{}:{}: expected an example's number, a blank and a label's number, "
                               "found '{}'",
                               path, lines.line_number(), printable(line.substr(0, 40)))};
    }
    pairs.push_back(pair);
  }
  std::ranges::sort(pairs);
  return pairs;
}

Result<void> write_scores(const std::string& path, std::span<const RankedExample> examples,
                          std::uint32_t labels) {
  if (path.ends_with(".npz")) return write_npz(path, examples, labels);
  auto file = TextOutput::create(path);
  if (!file) return file.error();
  Result<void> written;
  if (!is_trec(path)) written = (*file)->write(fmt::format("{} {}\n", examples.size(), labels));
  for (std::size_t i = 0; written && i < examples.size(); ++i) {
    written = (*file)->write(score_line(i, examples[i].ranked, is_trec(path)));
  }
  return written ? (*file)->commit(AtomicFile::Existing::kReplace) : written;
}

Result<void> write_per_label(const std::string& path, std::span<const RankedExample> examples,
                             const LabelReport& report) {
  std::map<std::uint32_t, LabelFigures> figures;
  for (const auto& [labels, ranked] : examples) {
    if (labels.empty()) continue;
    for (const std::uint32_t label : labels) ++figures[label].truths;
    for (std::size_t k = 0; k < ranked.size(); ++k) {
      const bool is_predicted = ranked[k].logit >= report.logit_min;
      const bool is_right = std::ranges::binary_search(labels, ranked[k].label);
      if (!is_predicted && (k >= Quality::kDepthMax || !is_right)) continue;
      LabelFigures& own = figures[ranked[k].label];
      own.in_five += is_right && k < Quality::kDepthMax ? 1 : 0;
      own.predicted += is_predicted ? 1 : 0;
      own.right += is_predicted && is_right ? 1 : 0;
    }
  }
  auto file = TextOutput::create(path);
  if (!file) return file.error();
  Result<void> written = (*file)->write(
      "label,name,training_examples,true,found_at_5,predicted,right,precision,recall,f1\n");
  for (const auto& [label, own] : figures) {
    if (!written) return written;
    written = (*file)->write(fmt::format(
        "{},{},{},{},{},{},{},{},{},{}\n", label, csv_field(std::string(report.names.name(label))),
        label < report.training_counts.size() ? report.training_counts[label] : 0, own.truths,
        own.in_five, own.predicted, own.right, quotient(own.right, own.predicted),
        quotient(own.right, own.truths), quotient(2 * own.right, own.predicted + own.truths)));
  }
  return written ? (*file)->commit(AtomicFile::Existing::kReplace) : written;
}

}  // namespace gleaner
