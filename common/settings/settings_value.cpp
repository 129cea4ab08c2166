#include "common/settings/settings_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>

#include "common/host_port.hpp"

namespace gleaner {
namespace {

constexpr std::uint64_t kDay = 24 * 3600;
constexpr std::uint64_t kMost = 36'525 * kDay;

struct TimeUnit {
  std::uint64_t seconds;
  std::array<std::string_view, 5> names;
};

constexpr std::array<TimeUnit, 5> kTimeUnits = {{{1, {"s", "sec", "secs", "second", "seconds"}},
                                                 {60, {"m", "min", "mins", "minute", "minutes"}},
                                                 {3600, {"h", "hr", "hrs", "hour", "hours"}},
                                                 {kDay, {"d", "day", "days"}},
                                                 {7 * kDay, {"w", "wk", "week", "weeks"}}}};

// Seconds in one "s", "min", "hours", "d" or "weeks"; 0 for other words.
std::uint64_t seconds_per(std::string_view unit) {
  for (const TimeUnit& one : kTimeUnits) {
    if (!unit.empty() && std::ranges::find(one.names, unit) != one.names.end()) return one.seconds;
  }
  return 0;
}

std::string in_small_letters(std::string_view word) {
  std::string small(word);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

constexpr std::string_view kByteSuffixes = "KMGT";

// from_chars refuses a leading "+" and a leading blank, and so does this.
template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A control character in a path, name or address is a slip, and would spoil a log.
bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

Result<std::uint64_t> parse_duration_seconds(std::string_view text) {
  const Error wrong{
      ErrorCode::kInvalidArgument,
      fmt::format("'{}' is no span of time: give one such as 30m, 12h, 7d or 2w", text)};
  std::uint64_t seconds = 0;
  const auto take = [&text](const char* characters) {
    const std::size_t end = std::min(text.find_first_not_of(characters), text.size());
    const std::string_view taken = text.substr(0, end);
    text.remove_prefix(end);
    return taken;
  };
  for (take(" "); !text.empty(); take(" ")) {
    std::uint64_t number = 0;
    const std::string_view digits = take("0123456789");
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    take(" ");
    const std::uint64_t unit = seconds_per(take("abcdefghijklmnopqrstuvwxyz"));
    if (parsed.ec != std::errc{} || unit == 0 || number > (kMost - seconds) / unit) return wrong;
    seconds += number * unit;
  }
  if (seconds == 0) return wrong;
  return seconds;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: rows of the table for a[0, i - 2), a[0, i - 1) and a[0, i).
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before_last, last);
    std::swap(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substituted, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

bool is_close(std::size_t distance, std::string_view word) {
  return distance <= std::max<std::size_t>(1, word.size() / 3);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  const std::string wanted = in_small_letters(word);
  const auto distance = [&](const std::string& one) {
    return edit_distance(in_small_letters(one), wanted);
  };
  const auto closest = std::ranges::min_element(known, {}, distance);
  if (closest == known.end() || !is_close(distance(*closest), *closest)) return {};
  if (distance(*closest) == closest->size()) return {};  // no letter is the same
  return fmt::format("; did you mean '{}'?", *closest);
}

std::string did_you_mean_number(std::string_view text) {
  std::string number(text);
  const bool is_percent = number.ends_with('%');
  if (is_percent) number.erase(number.find_last_not_of(" %") + 1);
  const std::size_t comma = number.find(',');
  if (comma != std::string::npos) number[comma] = '.';
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool is_number = read.ec == std::errc() && read.ptr == number.data() + number.size();
  if (!is_number || (!is_percent && comma == std::string::npos)) return {};
  return fmt::format("; did you mean {}?", is_percent ? value / 100 : value);
}

std::string SettingValue::expects() const {
  std::string text = noun;
  if (!range.empty()) text += " " + range;
  for (const std::string& word : words) {
    text += (&word == &words.back() ? ", or " : ", ") + word;
  }
  return text;
}

bool SettingValue::allows_word(std::string_view text) const {
  return std::ranges::find(words, text) != words.end();
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<double> parse_number(std::string_view text) {
  const std::optional<double> value = parse_whole<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string unit(text.substr(digits));
  unit.erase(0, unit.find_first_not_of(' '));
  std::ranges::transform(unit, unit.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  unsigned shift = 0;
  if (digits < text.size()) {
    const std::size_t suffix = unit.empty() ? std::string_view::npos : kByteSuffixes.find(unit[0]);
    if (suffix == std::string_view::npos) return std::nullopt;
    const std::string_view rest = std::string_view(unit).substr(1);
    if (!rest.empty() && rest != "B" && rest != "IB") return std::nullopt;
    shift = static_cast<unsigned>(suffix + 1) * 10;
  }
  const std::optional<std::uint64_t> count = parse_whole<std::uint64_t>(text.substr(0, digits));
  if (!count || *count > (std::numeric_limits<std::uint64_t>::max() >> shift)) return std::nullopt;
  return *count << shift;
}

std::string bytes_text(std::uint64_t bytes) {
  std::size_t power = 0;
  while (power < kByteSuffixes.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  return power == 0 ? std::to_string(bytes) : fmt::format("{}{}", bytes, kByteSuffixes[power - 1]);
}

namespace detail {

SettingValue integer_value(std::int64_t low, std::int64_t high,
                           std::function<void(std::int64_t)> store,
                           std::function<std::string()> get) {
  SettingValue value;
  value.kind = SettingKind::kInteger;
  value.noun = "an integer";
  value.range = high == std::numeric_limits<std::int64_t>::max()
                    ? fmt::format("from {} to 2^63 - 1", low)
                    : fmt::format("from {} to {}", low, high);
  value.set = [low, high, store = std::move(store)](std::string_view text) {
    const std::optional<std::int64_t> parsed = parse_integer(text);
    if (!parsed || *parsed < low || *parsed > high) return false;
    store(*parsed);
    return true;
  };
  value.get = std::move(get);
  return value;
}

SettingValue number_value(double low, double high, std::string range,
                          std::function<double(double)> narrow, std::function<void(double)> store,
                          std::function<std::string()> get) {
  SettingValue value;
  value.kind = SettingKind::kNumber;
  value.noun = "a number";
  value.range = std::move(range);
  value.set = [low, high, narrow = std::move(narrow),
               store = std::move(store)](std::string_view text) {
    const std::optional<double> parsed = parse_number(text);
    if (!parsed || std::abs(*parsed) > std::numeric_limits<float>::max()) return false;
    const double held = narrow(*parsed);
    if (!(held >= low && held <= high)) return false;
    store(held);
    return true;
  };
  value.get = std::move(get);
  return value;
}

std::string number_text(float value) {
  return fmt::format("{}", value);
}

std::string number_text(double value) {
  return fmt::format("{}", value);
}

}  // namespace detail

SettingValue boolean_setting(bool& field) {
  SettingValue value;
  value.kind = SettingKind::kBoolean;
  value.noun = "true or false";
  value.set = [&field](std::string_view text) {
    if (text != "true" && text != "false") return false;
    field = text == "true";
    return true;
  };
  value.get = [&field] { return std::string(field ? "true" : "false"); };
  return value;
}

SettingValue text_setting(std::string& field, std::string noun) {
  SettingValue value;
  value.kind = SettingKind::kText;
  value.noun = std::move(noun);
  value.set = [&field](std::string_view text) {
    if (has_control_character(text)) return false;
    field = text;
    return true;
  };
  value.get = [&field] { return field; };
  return value;
}

SettingValue bytes_setting(std::uint64_t& field, std::uint64_t low, std::uint64_t high) {
  SettingValue value;
  value.kind = SettingKind::kBytes;
  value.noun = "a size in bytes, K, M, G or T";
  value.range = fmt::format("from {} to {}", bytes_text(low), bytes_text(high));
  value.set = [&field, low, high](std::string_view text) {
    const std::optional<std::uint64_t> parsed = parse_bytes(text);
    if (!parsed || *parsed < low || *parsed > high) return false;
    field = *parsed;
    return true;
  };
  value.get = [&field] { return bytes_text(field); };
  return value;
}

SettingValue host_setting(std::string& field) {
  SettingValue value;
  value.kind = SettingKind::kText;
  value.noun = "HOST";
  value.range = "such as trainer.example.org, 192.0.2.1 or 192.0.2.1:7070, or empty";
  value.set = [&field](std::string_view text) {
    if (!text.empty()) {
      const Result<HostPort> host = parse_host(text);
      if (!host || has_control_character(text) || is_any_address(host->host)) return false;
    }
    field = text;
    return true;
  };
  value.get = [&field] { return field; };
  return value;
}

SettingValue host_port_setting(std::string& field, bool wants_port) {
  SettingValue value;
  value.kind = SettingKind::kText;
  value.noun = "HOST:PORT";
  value.range = wants_port ? "such as 192.0.2.1:7070" : "such as 0.0.0.0:7070, or empty";
  value.set = [&field, wants_port](std::string_view text) {
    if (!text.empty()) {
      const Result<HostPort> address = parse_host_port(text);
      if (!address || has_control_character(text) || (wants_port && address->port == 0)) {
        return false;
      }
    }
    field = text;
    return true;
  };
  value.get = [&field] { return field; };
  return value;
}

}  // namespace gleaner
