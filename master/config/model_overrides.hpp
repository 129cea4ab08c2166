// The model keys that a person has set. Everything left out follows from the data: the recipe
// proposes a whole ModelConfig, and what is set here replaces its fields. One thread at a time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/model/model_fields.hpp"

namespace gleaner {

class ModelOverrides {
 public:
  // Every key set to the value of `model`.
  static ModelOverrides all(const ModelConfig& model);

  // `member` is that of a key.
  template <typename T>
  void set(T ModelConfig::*member, T value) {
    values_.*member = value;
    names_.insert(name_of(member));
  }

  template <typename T>
  void clear(T ModelConfig::*member) {
    names_.erase(name_of(member));
    values_.*member = ModelConfig{}.*member;
  }

  template <typename T>
  [[nodiscard]] std::optional<T> get(T ModelConfig::*member) const {
    return has(name_of(member)) ? std::optional<T>(values_.*member) : std::nullopt;
  }

  [[nodiscard]] bool has(std::string_view name) const { return names_.contains(name); }

  // `recipe` with the keys that are set in place. Does not validate.
  [[nodiscard]] ModelConfig applied_to(ModelConfig recipe) const;

  friend bool operator==(const ModelOverrides&, const ModelOverrides&) = default;

 private:
  template <typename T>
  static std::string name_of(T ModelConfig::*member) {
    std::string name;
    for_each_model_key([&](const auto& field) {
      if constexpr (std::is_same_v<decltype(field.member), T ModelConfig::*>) {
        if (field.member == member) name = field.name;
      }
    });
    return name;
  }

  ModelConfig values_;  // of the keys that are set; the others have their defaults
  std::set<std::string, std::less<>> names_;
};

}  // namespace gleaner
