#include "common/settings/settings_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "common/host_port.hpp"

namespace gleaner {
namespace {

constexpr std::string_view kByteSuffixes = "KMGT";

// A sign "+" is refused by from_chars; so is a leading blank. Neither is worth the ambiguity.
template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// In a path, a name or an address a control character is a slip; in a log it would be worse.
bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

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
