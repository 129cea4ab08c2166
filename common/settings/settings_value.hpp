// The value of one setting, bound to a field of a configuration: how it is read from text, written
// as text, and what it may be. A bound field outlives its binding. One thread at a time.
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

// Spans of time as people type them.

// "90s", "30 min", "12 hours", "1h 30m", "7d", "2w" in seconds; more than none, at most a hundred
// years.
Result<std::uint64_t> parse_duration_seconds(std::string_view text);

// The word or number that somebody probably meant. Pure.

// How many letters to insert, leave out, replace, or swap with their neighbour make `a` into `b`.
std::size_t edit_distance(std::string_view a, std::string_view b);

// A word further away than a third of its length is another word.
bool is_close(std::size_t distance, std::string_view word);

// "; did you mean 'title'?" with the word of `known` that is closest, whatever its capitals. Empty
// when none is close.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 0.2?" for a number as people write it: "0,2", "20 %", "20%". Otherwise empty.
std::string did_you_mean_number(std::string_view text);

enum class SettingKind : std::uint8_t {
  kInteger,
  kNumber,
  kBoolean,
  kText,
  kChoice,  // one of a list of words
  kBytes,   // an integer, or one with a suffix: 512M, 4G
};

// The text that stands for an unset std::optional field.
inline constexpr std::string_view kAutoText = "auto";

struct SettingValue {
  SettingKind kind = SettingKind::kText;
  std::vector<std::string> words;  // that may stand in its place: "auto"
  std::string noun;                // "an integer"
  std::string range;               // "from 16 to 4096"; may be empty
  // Takes the value from text; false, and nothing changed, when the text is not acceptable.
  std::function<bool(std::string_view)> set;
  // The canonical text: set(get()) changes nothing.
  std::function<std::string()> get;

  // "an integer from 16 to 4096, or auto", for errors and documentation.
  [[nodiscard]] std::string expects() const;
  [[nodiscard]] bool allows_word(std::string_view text) const;
};

// A count of bytes: digits, then K, M, G or T (powers of 1024), then "B" or "iB" if you like; in
// small letters and behind a blank as well.
std::optional<std::uint64_t> parse_bytes(std::string_view text);
// The shortest exact text: 4G, 1536M, 1000.
std::string bytes_text(std::uint64_t bytes);

std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<double> parse_number(std::string_view text);  // finite ones only

namespace detail {

// Serves every integral field, in the widest type; TOML has no integer beyond 2^63 - 1.
SettingValue integer_value(std::int64_t low, std::int64_t high,
                           std::function<void(std::int64_t)> store,
                           std::function<std::string()> get);
// `narrow` gives the value that the field would hold.
SettingValue number_value(double low, double high, std::string range,
                          std::function<double(double)> narrow, std::function<void(double)> store,
                          std::function<std::string()> get);
std::string number_text(float value);
std::string number_text(double value);

}  // namespace detail

// Bindings. `low` and `high` are included in the range.

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
// Text that parse_host_port accepts; empty text is no address.
// `wants_port` refuses port 0, which only a listener can use.
// HOST or HOST:PORT of one machine as others know it; may be empty.
SettingValue host_setting(std::string& field);
SettingValue host_port_setting(std::string& field, bool wants_port);

// `words[i]` stands for the enumerator with the value i.
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

// `value`, a binding of `field`, that also takes `word`, which stands for the value `meaning`.
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

// Makes a binding of an optional field out of one of a plain field: `bind` is called with a T& and
// returns its binding; the text "auto" empties the field.
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
