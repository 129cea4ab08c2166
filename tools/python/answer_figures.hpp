// The figures of `gleaner evaluate` for answers that a Python program has. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/model/precision.hpp"
#include "tools/dataset/dataset_statistics.hpp"
#include "tools/predict/ranking_quality.hpp"
#include "tools/python/csr_rows.hpp"

namespace gleaner {

class AnswerFigures {
 public:
  // Counts of the labels in training, which had `examples`.
  AnswerFigures(const std::vector<std::uint32_t>& label_counts, std::uint64_t examples)
      : propensities_(label_counts, examples), classes_(label_counts) {}

  AnswerFigures(const AnswerFigures&) = delete;  // parts refer to each other
  AnswerFigures& operator=(const AnswerFigures&) = delete;

  // `best`: rows x width labels, best first. Requires as many rows of true labels.
  void add(const CsrRows& labels, std::span<const std::uint32_t> best) {
    const std::size_t width = labels.rows() == 0 ? 0 : best.size() / labels.rows();
    for (std::size_t row = 0; row < labels.rows(); ++row) {
      quality_.add(labels.columns_of(row), best.subspan(row * width, width));
    }
  }

  // By name; not a number where no example has labels.
  [[nodiscard]] std::map<std::string, double> figures() const {
    std::map<std::string, double> figures;
    Precision precision = quality_.precision();
    visit_depths(precision, [&](const char* name, const char*, double value) {
      figures[name] = quality_.points() == 0 ? std::nan("") : value;
    });
    figures["ndcg_at_3"] = quality_.ndcg(1);
    figures["ndcg_at_5"] = quality_.ndcg(2);
    figures["recall_at_5"] = quality_.recall(2);
    figures["evaluated"] = static_cast<double>(quality_.points());
    constexpr std::array kNames = {"head", "torso", "tail"};
    for (std::size_t c = 0; c < kFrequencyClasses; ++c) {
      const Quality::ByClass& own = quality_.by_class(c);
      figures[std::string("recall_at_5_") + kNames[c]] =
          static_cast<double>(own.hits[2]) / static_cast<double>(own.true_labels);
    }
    return figures;
  }

 private:
  InversePropensities propensities_;
  FrequencyClasses classes_;
  Quality quality_{propensities_, classes_};
};

}  // namespace gleaner
