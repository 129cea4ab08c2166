#include "master/voters.hpp"

#include "common/check.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kLabelsPerPointMany = 2;  // of which a label says little

bool have_few_labels(const TrainingPoints& points) {
  std::uint64_t labels = 0;
  for (std::uint32_t p = 0; p < points.count; ++p) labels += points.at(p).labels.size();
  return labels < kLabelsPerPointMany * points.count;
}

std::variant<Neighbours, LabelDocuments> voters_among(const TrainingPoints& points,
                                                      std::uint32_t count) {
  if (have_few_labels(points)) return LabelDocuments(points);
  return Neighbours(points, count);
}

}  // namespace

Voters::Voters(const TrainingPoints& points, std::uint32_t count)
    : points_(points.count), voters_(voters_among(points, count)) {}

void Voters::embed(InputLayer& layer) {
  if (auto* documents = std::get_if<LabelDocuments>(&voters_)) documents->embed(layer);
}

std::vector<std::vector<LabelShare>> Voters::votes(std::span<const ExampleView> examples,
                                                   InputLayer* layer, ThreadPool& pool) const {
  if (const auto* documents = std::get_if<LabelDocuments>(&voters_)) {
    GLEANER_CHECK(layer != nullptr);
    return documents->votes(examples, *layer, pool);
  }
  return std::get<Neighbours>(voters_).votes(examples, pool);
}

}  // namespace gleaner
