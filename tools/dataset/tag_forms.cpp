#include "tools/dataset/tag_forms.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace gleaner {
namespace {

constexpr std::array<const char*, 3> kSeparators = {kTagComma, ";", "|"};

bool is_within(std::string_view text, char first, char last) {
  return text.size() >= 2 && text.front() == first && text.back() == last;
}

// Items in quotes of either kind, in which a backslash keeps what follows; other items end at a
// comma.
std::vector<std::string> items_of_python(std::string_view inside) {
  std::vector<std::string> tags(1);
  char quote = 0;
  for (std::size_t at = 0; at < inside.size(); ++at) {
    const char c = inside[at];
    if (quote != 0 && c == '\\' && at + 1 < inside.size()) {
      tags.back() += inside[++at];
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '\'' || c == '"') && trimmed(tags.back()).empty()) {
      tags.back().clear();
      quote = c;
    } else if (quote == 0 && c == ',') {
      tags.emplace_back();
    } else {
      tags.back() += c;
    }
  }
  return tags;
}

std::vector<std::string> items_of_list(std::string_view list) {
  const auto json = nlohmann::json::parse(list, nullptr, false);
  const auto is_nested = [](const auto& item) { return item.is_structured(); };
  if (!json.is_array() || std::ranges::any_of(json, is_nested)) {
    return items_of_python(list.substr(1, list.size() - 2));
  }
  std::vector<std::string> tags;
  for (const auto& item : json) {
    tags.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  }
  return tags;
}

}  // namespace

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") + 1 - first);
}

std::vector<std::string> cut_at(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + separator.size();
  }
  return parts;
}

std::vector<std::string> cut_tags(std::string_view text, const std::string& separator) {
  text = trimmed(text);
  if (separator == kTagList) {
    return is_within(text, '[', ']') ? items_of_list(text) : cut_at(text, kTagComma);
  }
  if (separator == kTagBrackets) {
    return is_within(text, '<', '>') ? cut_at(text.substr(1, text.size() - 2), "><")
                                     : cut_at(text, kTagComma);
  }
  return cut_at(text, separator);
}

void TagFormGuess::add(std::string_view text) {
  text = trimmed(text);
  if (text.empty()) return;
  ++texts_;
  lists_ += is_within(text, '[', ']');
  brackets_ += is_within(text, '<', '>');
  for (std::size_t i = 0; i < kSeparators.size(); ++i) {
    has_separator_[i] = has_separator_[i] || text.find(kSeparators[i]) != std::string_view::npos;
  }
}

std::string TagFormGuess::form() const {
  if (texts_ > 0 && lists_ == texts_) return kTagList;
  if (texts_ > 0 && brackets_ == texts_) return kTagBrackets;
  const auto first = std::ranges::find(has_separator_, true);
  return first == has_separator_.end()
             ? kTagComma
             : kSeparators[static_cast<std::size_t>(first - has_separator_.begin())];
}

std::string form_inside(std::string_view label) {
  if (label.starts_with("['") || label.starts_with("[\"")) return kTagList;
  if (is_within(label, '<', '>')) return kTagBrackets;
  for (const char* separator : {";", "|"}) {
    if (label.find(separator) != std::string_view::npos) return separator;
  }
  return {};
}

}  // namespace gleaner
