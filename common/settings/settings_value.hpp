// A setting's value, bound to a field of a configuration: reading and writing it as text, and the
// accepted values. The field outlives its binding. One thread at a time.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

// The seconds of a time span such as "90s", "30 min", "12 hours", "1h 30m", "7d" or "2w": more than
// 0, at most a hundred years.
Result<std::uint64_t> parse_duration_seconds(std::string_view text);

// The number of letters to insert, delete, replace, or swap with their neighbour to turn `a` into
// `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// Whether the distance is at most a third of the word's length.
bool is_close(std::size_t distance, std::string_view word);

// "; did you mean 'title'?" with the closest word of `known`, in any case; empty when no word is
// close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 0.2?" for a number in another form: "0,2", "20 %", "20%". Otherwise empty.
std::string did_you_mean_number(std::string_view text);

enum class SettingKind : std::uint8_t {
  kInteger,
  kNumber,
  kBoolean,
  kText,
  kChoice,  // one of a list of words
  kBytes,   // an integer, also with a suffix: 512M, 4G
};

// The text of an unset std::optional field.
inline constexpr std::string_view kAutoText = "auto";

struct SettingValue {
  SettingKind kind = SettingKind::kText;
  std::vector<std::string> words;  // accepted besides the range: "auto"
  std::string noun;                // "an integer"
  std::string range;               // "from 16 to 4096"; may be empty
  // Sets the value from text. False, without a change, if the text is not accepted.
  std::function<bool(std::string_view)> set;
  // The canonical text: set(get()) changes nothing.
  std::function<std::string()> get;

  // "an integer from 16 to 4096, or auto", for errors and documentation.
  [[nodiscard]] std::string expects() const;
  [[nodiscard]] bool allows_word(std::string_view text) const;

  // A file or a folder. In a configuration file its path begins at that file.
  [[nodiscard]] bool is_path() const { return noun == "PATH" || noun == "FILE" || noun == "DIR"; }
};

// A number of bytes: digits, then K, M, G or T (powers of 1024), then optionally "B" or "iB"; also
// in small letters and after a blank.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// The shortest exact text: 4G, 1536M, 1000.
std::string bytes_text(std::uint64_t bytes);

std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // must be finite

namespace detail {

// Binds any integral field, in the widest type; TOML has no integer beyond 2^63 - 1.
SettingValue integer_value(std::int64_t low, std::int64_t high,
                           std::function<void(std::int64_t)> store,
                           std::function<std::string()> get);
// `narrow` converts a value to the field's precision.
SettingValue number_value(double low, double high, std::string range,
                          std::function<double(double)> narrow, std::function<void(double)> store,
                          std::function<std::string()> get);
std::string number_text(float value);
std::string number_text(double value);

}  // namespace detail

// Bindings. Ranges include `low` and `high`.

template <std::integral T>
SettingValue integer_setting(T& field, std::int64_t low, std::int64_t high) {
  return detail::integer_value(
      low, high, [&field](std::int64_t value) { field = static_cast<T>(value); },
      [&field] { return std::to_string(field); });
}

// A span of time that people give as a whole number of `Unit`.
template <typename Unit, typename Span>
SettingValue span_setting(Span& field, std::int64_t low, std::int64_t high) {
  return detail::integer_value(
      low, high, [&field](std::int64_t value) { field = Unit(value); },
      [&field] { return std::to_string(std::chrono::duration_cast<Unit>(field).count()); });
}

template <std::floating_point T>
SettingValue number_setting(T& field, T low, T high) {
  return detail::number_value(
      low, high, "from " + detail::number_text(low) + " to " + detail::number_text(high),
      [](double value) { return static_cast<double>(static_cast<T>(value)); },
      [&field](double value) { field = static_cast<T>(value); },
      [&field] { return detail::number_text(field); });
}

SettingValue boolean_setting(bool& field);
SettingValue text_setting(std::string& field, std::string noun);
SettingValue bytes_setting(std::uint64_t& field, std::uint64_t low, std::uint64_t high);
// Text that parse_host_port accepts, or empty. `wants_port` refuses port 0, which only a listener
// can use. host_setting() takes HOST or HOST:PORT of a machine as others know it, or empty.
SettingValue host_setting(std::string& field);
SettingValue host_port_setting(std::string& field, bool wants_port);

// `words[i]` is the enumerator with value i.
template <typename Enum>
SettingValue choice_setting(Enum& field, const std::vector<std::string>& words) {
  SettingValue value;
  value.kind = SettingKind::kChoice;
  value.noun = "one of";
  for (const std::string& word : words) value.range += (value.range.empty() ? "" : ", ") + word;
  value.set = [&field, words](std::string_view text) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] == text) {
        field = static_cast<Enum>(i);
        return true;
      }
    }
    return false;
  };
  value.get = [&field, words] { return words.at(static_cast<std::size_t>(field)); };
  return value;
}

// Extends `value`, a binding of `field`, by `word`, which means the value `meaning`.
template <typename T>
SettingValue or_word(T& field, SettingValue value, std::string word, T meaning) {
  value.words.push_back(word);
  value.set = [&field, set = std::move(value.set), word, meaning](std::string_view text) {
    if (text != word) return set(text);
    field = meaning;
    return true;
  };
  value.get = [&field, get = std::move(value.get), word, meaning] {
    return field == meaning ? word : get();
  };
  return value;
}

// Binds an optional field. `bind` is called with a T& and returns its binding; the text "auto"
// empties the field.
template <typename T, typename Bind>
SettingValue or_auto(std::optional<T>& field, Bind bind) {
  T scratch{};
  SettingValue value = bind(scratch);
  value.words.emplace_back(kAutoText);
  value.set = [&field, bind](std::string_view text) {
    if (text == kAutoText) {
      field.reset();
      return true;
    }
    T parsed{};
    if (!bind(parsed).set(text)) return false;
    field = std::move(parsed);
    return true;
  };
  value.get = [&field, bind]() -> std::string {
    if (!field) return std::string(kAutoText);
    T copy = *field;
    return bind(copy).get();
  };
  return value;
}

}  // namespace gleaner
