#include "common/settings/did_you_mean.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

namespace gleaner {
namespace {

std::string in_small_letters(std::string_view word) {
  std::string small(word);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

}  // namespace

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

}  // namespace gleaner
