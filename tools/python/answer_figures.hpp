// The figures of `gleaner evaluate` for answers that a Python program has. One thread.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <string>

#include "storage/infer/answering_model.hpp"
#include "tools/predict/ranking_quality.hpp"

namespace gleaner {

class AnswerFigures {
 public:
  explicit AnswerFigures(const AnsweringModel& model)
      : propensities_(model.label_counts(), model.config().points),
        classes_(model.label_counts()) {}

  AnswerFigures(const AnswerFigures&) = delete;  // parts refer to each other
  AnswerFigures& operator=(const AnswerFigures&) = delete;

  // True labels, ascending, and the best ones.
  void add(std::span<const std::uint32_t> labels, std::span<const std::uint32_t> best) {
    quality_.add(labels, best);
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
