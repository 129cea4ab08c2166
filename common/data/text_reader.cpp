#include "common/data/text_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gleaner {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// An XC header has several fields and no ':'; a libsvm line of several fields has one.
TextFormat detect(std::string_view line) {
  if (line.starts_with('#')) return TextFormat::kLibsvm;
  if (line.find(':') != std::string_view::npos) return TextFormat::kLibsvm;
  while (!line.empty() && is_blank(line.back())) line.remove_suffix(1);
  const bool has_fields = std::any_of(line.begin(), line.end(), is_blank);
  return has_fields ? TextFormat::kXc : TextFormat::kLibsvm;
}

bool has_fields(std::string_view line, std::size_t count) {
  std::size_t fields = 0;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (is_blank(line[at])) continue;
    if (line[at] < '0' || line[at] > '9') return false;
    fields += at == 0 || is_blank(line[at - 1]) ? 1 : 0;
  }
  return fields == count;
}

IdLimit tighter(IdLimit a, IdLimit b) {
  return b.count < a.count ? std::move(b) : std::move(a);
}

}  // namespace

TextReader::TextReader(std::unique_ptr<ByteSource> source, const TextOptions& options)
    : options_(options), lines_(std::move(source)) {}

Result<std::unique_ptr<TextReader>> TextReader::open(std::unique_ptr<ByteSource> source,
                                                     const TextOptions& options) {
  std::unique_ptr<TextReader> reader(new TextReader(std::move(source), options));
  if (auto begun = reader->begin(); !begun) return begun.error();
  return reader;
}

Result<void> TextReader::refuse(std::uint64_t line, std::size_t column,
                                std::string_view text) const {
  if (options_.on_problem) {
    options_.on_problem({line, column, std::string(text)});
    return {};
  }
  return Error{ErrorCode::kInvalidData,
               fmt::format("{}:{}:{}: {}", source().name(), line, column, text)};
}

Result<void> TextReader::begin() {
  std::string_view line;
  Result<bool> has_line = lines_.next(line);
  if (!has_line) return has_line.error();
  if (!*has_line) {
    is_ended_ = true;
    return refuse(1, 1, "expected a data set in XC or libsvm text form, found an empty file");
  }
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  format_ = options_.format == TextFormat::kAuto ? detect(line) : options_.format;
  if (format_ == TextFormat::kXc) {
    if (auto parsed = parse_header(line); !parsed) return parsed;
  } else {
    pending_ = std::string(line);
  }
  parser_ = PointParser(rules());
  return {};
}

Result<void> TextReader::check_first(std::string_view line) {
  if (options_.format != TextFormat::kAuto || format_ != TextFormat::kLibsvm || points_ > 0) {
    return {};
  }
  constexpr std::size_t kHeaderFields = 3;
  if (line.starts_with('#')) {
    if (!has_fields(line.substr(1), kHeaderFields)) return {};
    return refuse(lines_.line_number(), 1,
                  fmt::format("expected an example, found a '#' before what looks like the header "
                              "'points features labels' ({}): take the '#' away",
                              quote_found(line, 0)));
  }
  if (has_fields(line, 0) || line.find(':') != std::string_view::npos) return {};
  return refuse(
      lines_.line_number(), 1,
      fmt::format("expected {}an example with a feature ('labels feature:value'), found {}",
                  lines_.line_number() == 1
                      ? "the header 'points features labels' or "
                      : "no line with '#' before the header 'points features labels', or ",
                  quote_found(line, 0)));
}

Result<void> TextReader::parse_header(std::string_view line) {
  struct Field {
    std::string_view name;
    std::uint64_t max;
  };

  constexpr std::array<Field, 3> kFields = {{{"number of examples", std::uint64_t{1} << 48},
                                             {"number of features", kFeaturesMax},
                                             {"number of labels", kLabelsMax}}};
  std::array<std::uint64_t, 3> counts{};
  std::size_t at = 0;
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    while (at < line.size() && is_blank(line[at])) ++at;
    const char* const last = line.data() + line.size();
    const auto [end, error] = std::from_chars(line.data() + at, last, counts[i]);
    const bool is_separated = end == last || is_blank(*end);
    if (error != std::errc{} || !is_separated || counts[i] == 0 || counts[i] > kFields[i].max) {
      return refuse(1, at + 1,
                    fmt::format("expected the {} (1 to {}) of the header 'points features "
                                "labels', found {}",
                                kFields[i].name, kFields[i].max, quote_found(line, at)));
    }
    at = static_cast<std::size_t>(end - line.data());
  }
  while (at < line.size() && is_blank(line[at])) ++at;
  if (at < line.size()) {
    return refuse(1, at + 1,
                  fmt::format("expected the end of the header 'points features labels', found {}",
                              quote_found(line, at)));
  }
  announced_points_ = counts[0];
  announced_ =
      Dimensions{static_cast<std::uint32_t>(counts[1]), static_cast<std::uint32_t>(counts[2])};
  return {};
}

PointRules TextReader::rules() const {
  PointRules rules;
  if (announced_) {
    rules.features = {announced_->features,
                      fmt::format("the header announces {} features", announced_->features)};
    rules.labels = {announced_->labels,
                    fmt::format("the header announces {} labels", announced_->labels)};
  }
  if (options_.limits) {
    const Dimensions limits = *options_.limits;
    rules.features = tighter(
        rules.features, {limits.features, fmt::format("{} has {} features{}", options_.limits_name,
                                                      limits.features, options_.limits_remedy)});
    rules.labels = tighter(rules.labels,
                           {limits.labels, fmt::format("{} has {} labels{}", options_.limits_name,
                                                       limits.labels, options_.limits_remedy)});
  }
  if (format_ == TextFormat::kLibsvm) {
    rules.first_feature = options_.libsvm_first_feature;
    rules.has_comments = true;
  }
  return rules;
}

// The next line with an example. Empty lines are allowed only at the end of the file.
Result<bool> TextReader::next_line(std::string_view& line) {
  std::uint64_t empty_line = 0;
  for (;;) {
    if (pending_) {
      first_line_ = std::move(*pending_);
      pending_.reset();
      line = first_line_;
    } else {
      Result<bool> has_line = lines_.next(line);
      if (!has_line || !*has_line) return has_line;
    }
    if (line.empty()) {
      if (empty_line == 0) empty_line = lines_.line_number();
      continue;
    }
    if (auto first = check_first(line); !first) return first.error();
    if (format_ == TextFormat::kLibsvm && line[0] == '#') continue;
    if (empty_line == 0) return true;
    Result<void> refused = refuse(
        empty_line, 1,
        "expected an example, found an empty line (an example without labels and features is a "
        "single blank)");
    if (!refused) return refused.error();
    return true;
  }
}

// Compares the number of examples with the header's.
Result<void> TextReader::check_end() {
  if (is_ended_) return {};
  is_ended_ = true;
  const std::uint64_t wanted = announced_points_.value_or(1);
  if (points_ >= wanted) return {};
  return refuse(lines_.line_number() + 1, 1,
                fmt::format("expected {} examples{}, found the end of the file after {}", wanted,
                            announced_points_ ? " as the header announces" : " or more", points_));
}

Dimensions TextReader::dimensions() const {
  const Dimensions found = announced_.value_or(used_);
  return {std::max(found.features, 1U), std::max(found.labels, 1U)};
}

Result<bool> TextReader::next(Point& point) {
  for (;;) {
    std::string_view line;
    Result<bool> has_line = next_line(line);
    if (!has_line) return has_line;
    if (!*has_line) {
      if (auto ended = check_end(); !ended) return ended.error();
      return false;
    }
    Result<void> accepted;
    if (announced_points_ && points_ == *announced_points_) {
      accepted = refuse(lines_.line_number(), 1,
                        fmt::format("expected the end of the file after the {} examples that the "
                                    "header announces, found {}",
                                    points_, quote_found(line, 0)));
      if (!accepted) return accepted.error();
    }
    const std::optional<LineProblem> found = parser_.parse(line, point);
    ++points_;
    if (!found) break;
    accepted = refuse(lines_.line_number(), found->column, found->text);
    if (!accepted) return accepted.error();
  }
  if (!point.features.empty()) used_.features = std::max(used_.features, point.features.back() + 1);
  if (!point.labels.empty()) used_.labels = std::max(used_.labels, point.labels.back() + 1);
  return true;
}

}  // namespace gleaner
