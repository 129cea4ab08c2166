// The fields of a record, which visit_fields() names, to JSON and back. Reading gives false for a
// value of another kind. For the sources that keep records.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/ids.hpp"
#include "common/time.hpp"
#include "schema/records.hpp"

namespace gleaner {

inline bool read(const nlohmann::json& value, bool& target) {
  if (!value.is_boolean()) return false;
  target = value.get<bool>();
  return true;
}

inline bool read(const nlohmann::json& value, double& target) {
  if (!value.is_number()) return false;
  target = value.get<double>();
  return true;
}

inline bool read(const nlohmann::json& value, std::string& target) {
  if (!value.is_string()) return false;
  target = value.get<std::string>();
  return true;
}

inline bool read(const nlohmann::json& value, WorkVerdict& target) {
  if (!value.is_string()) return false;
  const auto name = std::ranges::find(kWorkVerdictNames, value.get_ref<const std::string&>());
  if (name == kWorkVerdictNames.end()) return false;
  target = static_cast<WorkVerdict>(name - kWorkVerdictNames.begin());
  return true;
}

inline bool read(const nlohmann::json& value, std::map<std::string, std::string>& target) {
  if (!value.is_object()) return false;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) return false;
    target[key] = text.get<std::string>();
  }
  return true;
}

template <std::integral T>
bool read(const nlohmann::json& value, T& target) {
  if (!value.is_number_integer()) return false;
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (!std::in_range<T>(number)) return false;
    target = static_cast<T>(number);
    return true;
  }
  const auto number = value.get<std::int64_t>();
  if (!std::in_range<T>(number)) return false;
  target = static_cast<T>(number);
  return true;
}

inline bool read(const nlohmann::json& value, Micros& target) {
  std::uint64_t count = 0;
  if (!read(value, count) || !std::in_range<Micros::rep>(count)) return false;
  target = Micros(static_cast<Micros::rep>(count));
  return true;
}

inline bool read(const nlohmann::json& value, std::vector<BatchIndex>& target) {
  if (!value.is_array()) return false;
  for (const nlohmann::json& entry : value) {
    if (!read(entry, target.emplace_back())) return false;
  }
  return true;
}

// Replaces bytes that are not UTF-8 (in a volunteer's name) instead of refusing them.
inline std::string to_text(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename T>
const T& as_json(const T& value) {
  return value;
}

// JSON has no NaN; NaN means not measured.
inline double as_json(double value) {
  return std::isfinite(value) ? value : -1.0;
}

inline Micros::rep as_json(Micros value) {
  return value.count();
}

inline std::string_view as_json(WorkVerdict verdict) {
  return name_of(verdict);
}

// By value, because visit_fields takes mutable fields.
template <typename Record>
nlohmann::json to_json(Record record) {
  nlohmann::json object = nlohmann::json::object();
  visit_fields(record, [&](const char* name, const auto& value) { object[name] = as_json(value); });
  return object;
}

template <typename Record>
std::optional<Record> from_json(const nlohmann::json& object) {
  if (!object.is_object()) return std::nullopt;
  Record record;
  bool is_readable = true;
  visit_fields(record, [&](const char* name, auto& value) {
    const auto field = object.find(name);
    if (field != object.end() && !read(*field, value)) is_readable = false;
  });
  if (!is_readable) return std::nullopt;
  return record;
}

}  // namespace gleaner
