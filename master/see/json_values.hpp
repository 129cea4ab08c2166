// Values as the JSON of page and events has them.
#pragma once

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "common/console/terminal.hpp"
#include "common/model/precision.hpp"
#include "master/see/run_events.hpp"

namespace gleaner {

using Json = nlohmann::ordered_json;

// An unknown figure is null, so that nobody takes -1 for a measurement.
inline Json known(double value) {
  return value < 0 || !std::isfinite(value) ? Json() : Json(value);
}

Json known(std::unsigned_integral auto value) {
  return value;
}

// Adds all figures to `object`, or replaces them in their place.
inline void add_precision(Json& object, const Precision& precision) {
  visit_precision(precision, [&](const char* name, double value) { object[name] = known(value); });
}

inline Json text_or_null(const std::string& text) {
  return text.empty() ? Json() : Json(printable(text));
}

inline Json known(bool value) {
  return value;
}

inline Json known(const std::string& text) {
  return text_or_null(text);
}

// All fields that visit_fields() names.
template <typename Entry>
Json fields_of(const Entry& entry) {
  Json json = Json::object();
  visit_fields(entry, [&](const char* name, const auto& value) { json[name] = known(value); });
  return json;
}

inline double seconds(std::uint64_t us) {
  return static_cast<double>(us) / 1e6;
}

// Names come from peers: a broken one must not stop the program.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

inline Json program_of(const std::optional<PageServed::Program>& program) {
  if (!program) return {};
  return {{"url", program->url}, {"machine", program->machine}, {"sha256", program->sha256}};
}

inline Json values_of(const RecipeChosen& recipe) {
  Json values = Json::array();
  for (const RecipeChosen::Value& v : recipe.values) {
    values.push_back({{"key", v.key}, {"value", v.value}, {"why", v.why}});
  }
  return values;
}

}  // namespace gleaner
