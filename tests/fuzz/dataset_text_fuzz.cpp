// Input: a byte of options, then a text file, compressed or not. An accepted file is written as XC
// text, and must read back as the same examples.
#include <algorithm>
#include <cmath>
#include <vector>

#include "common/bytes.hpp"
#include "common/data/point_writer.hpp"
#include "common/data/text_reader.hpp"
#include "common/result.hpp"
#include "tests/support/memory_source.hpp"

namespace gleaner {
namespace {

constexpr std::size_t kPointsMax = 1000;

void check_point(const Point& point, Dimensions used) {
  GLEANER_CHECK(point.features.size() == point.values.size());
  const auto ascends = [](const std::vector<std::uint32_t>& ids) {
    return std::adjacent_find(ids.begin(), ids.end(), std::greater_equal<>()) == ids.end();
  };
  GLEANER_CHECK(ascends(point.labels) && ascends(point.features));
  GLEANER_CHECK(point.labels.empty() || point.labels.back() < used.labels);
  GLEANER_CHECK(point.features.empty() || point.features.back() < used.features);
  for (const float value : point.values) GLEANER_CHECK(std::isfinite(value) && value != 0);
}

// Points until the end or a refusal.
std::vector<Point> read(TextReader& reader, bool& is_whole) {
  std::vector<Point> points;
  for (;;) {
    Point point;
    const Result<bool> has_point = reader.next(point);
    is_whole = has_point.ok() && !*has_point;
    if (!has_point.ok()) GLEANER_CHECK(!has_point.error().message.empty());
    if (!has_point.ok() || !*has_point || points.size() == kPointsMax) return points;
    check_point(point, reader.used());
    points.push_back(std::move(point));
  }
}

void try_text(const TextOptions& options, std::string_view text) {
  Result<std::unique_ptr<ByteSource>> source = open_memory_source("f", text);
  if (!source) return;
  Result<std::unique_ptr<TextReader>> reader = TextReader::open(std::move(*source), options);
  if (!reader) return;
  bool is_whole = false;
  const std::vector<Point> points = read(**reader, is_whole);
  if (points.empty()) return;
  const Dimensions used = (*reader)->used();
  std::string again =
      xc_header(points.size(), {std::max(used.features, 1U), std::max(used.labels, 1U)});
  for (const Point& point : points) append_libsvm(again, point, 0);
  Result<std::unique_ptr<ByteSource>> written = open_memory_source("g", again);
  Result<std::unique_ptr<TextReader>> reread = TextReader::open(std::move(*written), {});
  GLEANER_CHECK(reread.ok());
  GLEANER_CHECK(read(**reread, is_whole) == points);
  GLEANER_CHECK(is_whole || points.size() == kPointsMax);
}

}  // namespace
}  // namespace gleaner

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  if (size < 1) return 0;
  TextOptions options;
  options.format = static_cast<TextFormat>(data[0] % 3);
  options.libsvm_first_feature = (data[0] >> 2) & 1u;
  if ((data[0] & 8u) != 0) options.limits = Dimensions{100, 50};
  try_text(options, as_text(ByteView(data, size).subspan(1)));
  return 0;
}
