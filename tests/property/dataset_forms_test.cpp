// Random data sets in random text forms: every form gives the same packed examples and fingerprint.
#include <algorithm>
#include <cmath>
#include <limits>

#include "common/counter_random.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/data/packed_writer.hpp"
#include "common/data/point_writer.hpp"
#include "tests/property/property_seed.hpp"
#include "tests/support/memory_source.hpp"
#include "tests/unit/common/data/dataset_files.hpp"

namespace gleaner {
namespace {

struct DataSet {
  Dimensions dimensions;
  std::vector<Point> points;
};

float random_value(Rng& rng) {
  switch (rng.next_below(6)) {
    case 0:
      return 1;
    case 1:
      return static_cast<float>(rng.next_below(1000)) + 1;
    case 2: {
      // Any finite float at all, subnormal ones included, but zero.
      for (;;) {
        const auto bits = static_cast<std::uint32_t>(rng.next());
        const float value = std::bit_cast<float>(bits);
        if (std::isfinite(value) && value != 0) return value;
      }
    }
    default:
      return signed_unit(rng.next()) + 2;
  }
}

std::vector<std::uint32_t> random_ids(Rng& rng, std::uint32_t end, std::uint64_t count_max) {
  std::vector<std::uint32_t> ids(rng.next_below(count_max + 1));
  for (std::uint32_t& id : ids) id = static_cast<std::uint32_t>(rng.next_below(end));
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

DataSet random_set(Rng& rng) {
  DataSet set;
  set.dimensions = {
      static_cast<std::uint32_t>(1 + rng.next_below(rng.chance(1, 4) ? 1'000'000'000 : 60)),
      static_cast<std::uint32_t>(1 + rng.next_below(rng.chance(1, 4) ? 100'000'000 : 30))};
  set.points.resize(1 + rng.next_below(rng.chance(1, 8) ? 3000 : 40));
  for (Point& point : set.points) {
    point.labels = random_ids(rng, set.dimensions.labels, 5);
    point.features = random_ids(rng, set.dimensions.features, 12);
    for (std::size_t i = 0; i < point.features.size(); ++i)
      point.values.push_back(random_value(rng));
  }
  return set;
}

template <typename T>
void shuffle(Rng& rng, std::vector<T>& items) {
  for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[rng.next_below(i)]);
}

std::string blanks(Rng& rng) {
  std::string text(1, rng.chance(1, 5) ? '\t' : ' ');
  while (rng.chance(1, 6)) text += rng.chance(1, 2) ? ' ' : '\t';
  return text;
}

// The point with everything about its line varied that must not matter.
std::string messy_line(Rng& rng, const Point& point, std::uint32_t first_feature) {
  std::vector<std::string> labels;
  for (const std::uint32_t label : point.labels) labels.push_back(std::to_string(label));
  if (!labels.empty() && rng.chance(1, 4)) labels.push_back(labels[rng.next_below(labels.size())]);
  if (rng.chance(1, 2)) shuffle(rng, labels);
  std::string line;
  for (const std::string& label : labels) line += (line.empty() ? "" : ",") + label;
  std::vector<std::string> fields;
  for (std::size_t i = 0; i < point.features.size(); ++i) {
    char digits[64];
    // Nine digits are enough for any float; seventeen are its double.
    std::snprintf(digits, sizeof digits, rng.chance(1, 2) ? "%.9g" : "%.17g",
                  static_cast<double>(point.values[i]));
    fields.push_back(std::to_string(point.features[i] + first_feature) + ":" + digits);
  }
  const std::uint32_t gap = point.features.empty() ? 0 : point.features.back() + 1;
  if (gap < 30 && rng.chance(1, 6)) {
    // A zero where the set has no feature; small sets have room for it more often than not.
    if (!point.features.empty() && point.features[0] > 0) {
      fields.push_back(std::to_string(first_feature) + (rng.chance(1, 2) ? ":0" : ":-0.0"));
    }
  }
  if (rng.chance(1, 2)) shuffle(rng, fields);
  for (const std::string& field : fields) line += blanks(rng) + field;
  if (line.empty() || rng.chance(1, 6)) line += blanks(rng);
  return line;
}

std::string messy_text(Rng& rng, const DataSet& set, bool is_xc, std::uint32_t first_feature) {
  const std::string line_end = rng.chance(1, 3) ? "\r\n" : "\n";
  std::string text;
  if (is_xc) {
    text = std::to_string(set.points.size()) + blanks(rng) +
           std::to_string(set.dimensions.features) + blanks(rng) +
           std::to_string(set.dimensions.labels) + line_end;
  }
  for (const Point& point : set.points) {
    text += messy_line(rng, point, is_xc ? 0 : first_feature);
    if (!is_xc && rng.chance(1, 10)) text += " # 1:2 comment";
    text += line_end;
  }
  if (rng.chance(1, 3)) text.resize(text.size() - line_end.size());
  // An empty last line without an end would otherwise be no line at all.
  if (rng.chance(1, 4)) text += line_end + line_end;
  return text;
}

std::string compressed(Rng& rng, const std::string& text) {
  const std::size_t cut = rng.next_below(text.size() + 1);
  const std::string_view view(text);
  switch (rng.next_below(5)) {
    case 0:
      return gzip(text);
    case 1:
      return gzip(view.substr(0, cut)) + gzip(view.substr(cut));
    case 2:
      return zstd(text);
    case 3:
      return zstd(view.substr(0, cut)) + zstd(view.substr(cut));
    default:
      return text;
  }
}

void require_equal(const PackedDataset& dataset, const DataSet& set) {
  REQUIRE(dataset.points() == set.points.size());
  REQUIRE(dataset.features() == set.dimensions.features);
  REQUIRE(dataset.labels() == set.dimensions.labels);
  for (std::size_t i = 0; i < set.points.size(); ++i) {
    const ExampleView view = dataset.example(i);
    REQUIRE(std::vector(view.labels.begin(), view.labels.end()) == set.points[i].labels);
    REQUIRE(std::vector(view.features.begin(), view.features.end()) == set.points[i].features);
    REQUIRE(std::vector(view.values.begin(), view.values.end()) == set.points[i].values);
  }
}

}  // namespace

TEST_CASE("data set forms: text of any form packs to the same points and fingerprint",
          "[dataset_forms]") {
  const std::uint64_t seed = property_seed();
  const TempFolder folder;
  for (std::uint64_t round = 0; round < 150; ++round) {
    INFO("GLEANER_SEED=" << seed << " round " << round);
    Rng rng(seed, Purpose::kTest, round);
    const DataSet set = random_set(rng);
    std::string clean = xc_header(set.points.size(), set.dimensions);
    for (const Point& point : set.points) append_libsvm(clean, point, 0);
    write_file(folder.file("clean"), clean);
    const bool is_xc = rng.chance(2, 3);
    PackOptions options;
    options.normalize = false;
    options.text.libsvm_first_feature = static_cast<std::uint32_t>(rng.next_below(2));
    options.text.format = is_xc ? TextFormat::kXc : TextFormat::kLibsvm;
    if (!is_xc) options.text.limits = set.dimensions;
    write_file(folder.file("messy"),
               compressed(rng, messy_text(rng, set, is_xc, options.text.libsvm_first_feature)));
    const auto messy = open_or_pack(folder.file("messy"), options);
    INFO((messy ? "" : messy.error().message));
    REQUIRE(messy.ok());
    require_equal(**messy, set);
    options.text.format = TextFormat::kXc;
    const auto plain = std::move(open_or_pack(folder.file("clean"), options)).value();
    REQUIRE(plain->fingerprint() == (*messy)->fingerprint());
    options.normalize = true;
    const auto normalized = std::move(open_or_pack(folder.file("clean"), options)).value();
    for (std::size_t i = 0; i < set.points.size(); ++i) {
      double sum = 0;
      for (const float value : normalized->example(i).values) sum += double{value} * double{value};
      REQUIRE((set.points[i].features.empty() ? sum == 0 : std::fabs(sum - 1) < 1e-6));
    }
  }
}

TEST_CASE("data set forms: a byte changed anywhere in the text is refused or read, never a crash",
          "[dataset_forms]") {
  const std::uint64_t seed = property_seed();
  std::uint64_t refused = 0;
  std::uint64_t read = 0;
  for (std::uint64_t round = 0; round < 2000; ++round) {
    INFO("GLEANER_SEED=" << seed << " round " << round);
    Rng rng(seed, Purpose::kTest, 1'000'000 + round);
    DataSet set = random_set(rng);
    set.points.resize(std::min<std::size_t>(set.points.size(), 5));
    std::string text = messy_text(rng, set, true, 0);
    const std::string alphabet("0123456789,:. \t\r\n-+eEnx#\0\xff", 27);
    text[rng.next_below(text.size())] = alphabet[rng.next_below(alphabet.size())];
    auto source = std::move(open_memory_source("f", text)).value();
    auto reader = TextReader::open(std::move(source), {});
    Result<bool> has_point = true;
    Point point;
    while (reader.ok() && has_point.ok() && *has_point) has_point = (*reader)->next(point);
    const bool is_refused = !reader.ok() || !has_point.ok();
    if (is_refused) {
      const std::string message = reader.ok() ? has_point.error().message : reader.error().message;
      REQUIRE_THAT(message, Catch::StartsWith("f:"));
      REQUIRE_THAT(message, Catch::Contains("expected"));
      REQUIRE_THAT(message, Catch::Contains("found"));
    }
    ++(is_refused ? refused : read);
  }
  // Both outcomes are met often, or this test looks at nothing.
  CHECK(refused > 200);
  CHECK(read > 100);
}

}  // namespace gleaner
