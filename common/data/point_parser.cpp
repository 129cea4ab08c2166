#include "common/data/point_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace gleaner {
namespace {

constexpr std::size_t kQuotedBytesMax = 24;

LineProblem problem(std::string_view line, std::size_t at, std::string_view expected) {
  return {at + 1, fmt::format("expected {}, found {}", expected, quote_found(line, at))};
}

std::string id_range(std::string_view what, std::uint32_t first, const IdLimit& limit) {
  if (limit.count == 0) return fmt::format("no {} id at all ({})", what, limit.reason);
  return fmt::format("a {} id from {} to {} ({})", what, first,
                     std::uint64_t{first} + limit.count - 1, limit.reason);
}

// Reads an unsigned number at `at` and moves past it. False if there is none or it exceeds all ids.
bool read_id(std::string_view line, std::size_t& at, std::uint64_t& id) {
  const char* const first = line.data() + at;
  const auto [end, error] = std::from_chars(first, line.data() + line.size(), id);
  if (error != std::errc{}) return false;
  at += static_cast<std::size_t>(end - first);
  return true;
}

enum class ValueOutcome { kOk, kMalformed, kNotFinite };

// Reads a number at `at` and moves past it. A number too small for a float becomes zero.
ValueOutcome read_value(std::string_view line, std::size_t& at, float& value) {
  const char* const first = line.data() + at;
  const char* const last = line.data() + line.size();
  auto [end, error] = std::from_chars(first, last, value);
  if (error == std::errc::result_out_of_range) {
    // from_chars does not distinguish too large from too small.
    double wide = 0;
    const auto again = std::from_chars(first, last, wide);
    const bool is_small = again.ec == std::errc{} && std::fabs(wide) < 1;
    if (!is_small) return ValueOutcome::kNotFinite;
    value = 0;
    end = again.ptr;
    error = std::errc{};
  }
  if (error != std::errc{}) return ValueOutcome::kMalformed;
  if (!std::isfinite(value)) return ValueOutcome::kNotFinite;
  at += static_cast<std::size_t>(end - first);
  return ValueOutcome::kOk;
}

// The column of the second occurrence of feature `id` in a parsed line.
std::size_t second_occurrence(std::string_view line, std::uint64_t id) {
  int seen = 0;
  std::size_t at = 0;
  while (at < line.size()) {
    while (at < line.size() && is_blank(line[at])) ++at;
    const std::size_t start = at;
    std::uint64_t found = 0;
    const bool is_feature = read_id(line, at, found) && at < line.size() && line[at] == ':';
    if (is_feature && found == id && ++seen == 2) return start;
    while (at < line.size() && !is_blank(line[at])) ++at;
  }
  return 0;
}

}  // namespace

std::string quote_found(std::string_view line, std::size_t at) {
  if (at >= line.size()) return "the end of the line";
  if (is_blank(line[at])) return "a blank";
  std::string text;
  std::size_t end = at;
  while (end < line.size() && !is_blank(line[end])) ++end;
  for (std::size_t i = at; i < end && i - at < kQuotedBytesMax; ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte < 0x20 || byte >= 0x7f) {
      text += fmt::format("\\x{:02x}", byte);
    } else {
      text += line[i];
    }
  }
  return fmt::format("'{}{}'", text, end - at > kQuotedBytesMax ? "..." : "");
}

std::optional<LineProblem> PointParser::parse(std::string_view line, Point& point) {
  point.labels.clear();
  point.features.clear();
  point.values.clear();
  std::size_t at = 0;
  if (line.empty()) {
    return LineProblem{1,
                       "expected an example, found an empty line (an example without labels and "
                       "features is a single blank)"};
  }
  if (!is_blank(line[0])) {
    if (auto found = parse_labels(line, at, point)) return found;
  }
  bool is_sorted = true;
  for (;;) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size() || (rules_.has_comments && line[at] == '#')) break;
    if (auto found = parse_feature(line, at, point)) return found;
    const std::size_t count = point.features.size();
    if (count >= 2 && point.features[count - 1] <= point.features[count - 2]) is_sorted = false;
  }
  if (!is_sorted) {
    if (auto found = sort_features(line, point)) return found;
  }
  drop_zeros(point);
  return std::nullopt;
}

std::optional<LineProblem> PointParser::parse_labels(std::string_view line, std::size_t& at,
                                                     Point& point) {
  bool is_sorted = true;
  for (;;) {
    const std::size_t start = at;
    std::uint64_t label = 0;
    if (!read_id(line, at, label) || label >= rules_.labels.count) {
      return problem(line, start, id_range("label", 0, rules_.labels));
    }
    if (!point.labels.empty() && label <= point.labels.back()) is_sorted = false;
    point.labels.push_back(static_cast<std::uint32_t>(label));
    if (at == line.size() || is_blank(line[at])) break;
    if (line[at] == ':') {
      return problem(line, start,
                     "a label list or, for an example without labels, a blank at the line's start");
    }
    if (line[at] != ',') return problem(line, at, "',' or a blank after the label");
    ++at;
  }
  if (!is_sorted) sort_labels(point);
  return std::nullopt;
}

std::optional<LineProblem> PointParser::parse_feature(std::string_view line, std::size_t& at,
                                                      Point& point) {
  const std::size_t start = at;
  std::uint64_t id = 0;
  const std::uint64_t end = std::uint64_t{rules_.first_feature} + rules_.features.count;
  if (!read_id(line, at, id) || id < rules_.first_feature || id >= end) {
    return problem(line, start, id_range("feature", rules_.first_feature, rules_.features));
  }
  if (at == line.size() || line[at] != ':') {
    return problem(line, at, "':' and a value after the feature id");
  }
  ++at;
  float value = 0;
  const std::size_t value_start = at;
  switch (read_value(line, at, value)) {
    case ValueOutcome::kMalformed:
      return problem(line, value_start, "a number");
    case ValueOutcome::kNotFinite:
      return problem(line, value_start, "a finite number that fits a 32-bit float");
    case ValueOutcome::kOk:
      break;
  }
  if (at < line.size() && !is_blank(line[at])) {
    return problem(line, at, "a blank after the value");
  }
  point.features.push_back(static_cast<std::uint32_t>(id - rules_.first_feature));
  point.values.push_back(value);
  return std::nullopt;
}

// Sorts features. A repeated feature is refused, since either of its values, or their sum, may be
// meant.
std::optional<LineProblem> PointParser::sort_features(std::string_view line, Point& point) {
  ++irregularities_.unsorted_points;
  sorting_.clear();
  for (std::size_t i = 0; i < point.features.size(); ++i) {
    sorting_.emplace_back(point.features[i], point.values[i]);
  }
  std::sort(sorting_.begin(), sorting_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < sorting_.size(); ++i) {
    point.features[i] = sorting_[i].first;
    point.values[i] = sorting_[i].second;
  }
  const auto twice = std::adjacent_find(point.features.begin(), point.features.end());
  if (twice == point.features.end()) return std::nullopt;
  const std::uint64_t id = std::uint64_t{*twice} + rules_.first_feature;
  return LineProblem{second_occurrence(line, id) + 1,
                     fmt::format("expected every feature once, found feature {} twice", id)};
}

// Zeros do not change any sum, and a model must not depend on whether they were written.
void PointParser::drop_zeros(Point& point) {
  const auto zeros = std::count(point.values.begin(), point.values.end(), 0.0F);
  if (zeros == 0) return;
  irregularities_.zero_values += static_cast<std::uint64_t>(zeros);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < point.values.size(); ++i) {
    if (point.values[i] == 0) continue;
    point.features[kept] = point.features[i];
    point.values[kept] = point.values[i];
    ++kept;
  }
  point.features.resize(kept);
  point.values.resize(kept);
}

void PointParser::sort_labels(Point& point) {
  std::sort(point.labels.begin(), point.labels.end());
  const auto end = std::unique(point.labels.begin(), point.labels.end());
  irregularities_.repeated_labels += static_cast<std::uint64_t>(point.labels.end() - end);
  point.labels.erase(end, point.labels.end());
}

}  // namespace gleaner
