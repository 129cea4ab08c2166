// Input: a package index. What is read makes a data set whose ids fit its names.
#include "common/bytes.hpp"
#include "common/result.hpp"
#include "tools/dataset/make/dataset_debian_index.hpp"
#include "tools/dataset/make/dataset_debian_points.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  Result<std::unique_ptr<ByteSource>> source =
      open_memory_source("dump", as_text(ByteView(data, size)));
  if (!source) return 0;
  const Result<std::vector<DebianPackage>> packages = read_debian_index(std::move(*source));
  if (!packages) return 0;
  const DebianSet set = make_debian_set(*packages, {});
  for (const auto* part : {&set.train, &set.test}) {
    for (const DebianPoint& made : *part) {
      GLEANER_CHECK(made.package < packages->size());
      GLEANER_CHECK(!made.point.labels.empty());
      for (const std::uint32_t label : made.point.labels) GLEANER_CHECK(label < set.labels.size());
      for (const std::uint32_t id : made.point.features)
        GLEANER_CHECK(id < set.features.numbered().size());
    }
  }
  return 0;
}
