#include "tools/dataset/make/dataset_debian_points.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "common/counter_random.hpp"
#include "common/data/packed_format.hpp"
#include "tools/dataset/files/dataset_split.hpp"

namespace gleaner {
namespace {

constexpr std::uint32_t kTrainPackagesMin = 2;

// Names that exactly one package provides stand for that package: "libghc-base-dev-4.15.1.0-6a406"
// is read as "ghc". What several provide, or nobody, stays as it is.
class ProviderMap {
 public:
  explicit ProviderMap(const std::vector<DebianPackage>& packages) {
    for (const DebianPackage& package : packages) {
      for (const std::string& name : package.provides) {
        const auto [place, is_new] = providers_.emplace(name, &package.name);
        if (!is_new) place->second = nullptr;
      }
    }
    for (const DebianPackage& package : packages) providers_[package.name] = &package.name;
  }

  [[nodiscard]] const std::string& resolve(const std::string& name) const {
    const auto place = providers_.find(name);
    return place == providers_.end() || place->second == nullptr ? name : *place->second;
  }

 private:
  std::unordered_map<std::string, const std::string*> providers_;
};

std::vector<std::string> resolved_dependencies(const DebianPackage& package,
                                               const ProviderMap& providers) {
  std::vector<std::string> names;
  for (const std::string& name : package.depends) {
    const std::string& resolved = providers.resolve(name);
    if (resolved != package.name) names.push_back(resolved);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace

DebianSet make_debian_set(const std::vector<DebianPackage>& packages,
                          const DebianOptions& options) {
  const ProviderMap providers(packages);
  Vocabulary labels;
  std::vector<std::vector<std::string>> dependencies(packages.size());
  for (std::size_t i = 0; i < packages.size(); ++i) {
    dependencies[i] = resolved_dependencies(packages[i], providers);
    for (const std::string& name : dependencies[i]) labels.count(name);
  }
  labels.number(options.dependents_min);

  DebianSet set;
  Vocabulary features;
  for (std::size_t i = 0; i < packages.size(); ++i) {
    DebianPoint made{i, {}};
    for (const std::string& name : dependencies[i]) {
      if (const auto* entry = labels.find(name)) made.point.labels.push_back(entry->id);
    }
    if (made.point.labels.empty()) continue;
    const std::string& name = packages[i].name;
    if (is_test_point(options.seed, checksum(name.data(), name.size()), options.test_share)) {
      set.test.push_back(std::move(made));
      continue;
    }
    set.train.push_back(std::move(made));
    for (const auto& [word, weight] : debian_words(packages[i])) features.count(word);
  }
  features.number(kTrainPackagesMin);
  for (std::vector<DebianPoint>* part : {&set.train, &set.test}) {
    for (DebianPoint& made : *part) {
      for (const auto& [word, weight] : debian_words(packages[made.package])) {
        const auto* entry = features.find(word);
        if (entry == nullptr) continue;
        made.point.features.push_back(entry->id);
        made.point.values.push_back(debian_value(weight, entry->occurrences, set.train.size()));
      }
    }
  }
  set.features = std::move(features);
  set.labels = labels.numbered();
  return set;
}

}  // namespace gleaner
