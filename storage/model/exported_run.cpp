#include "storage/model/exported_run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "storage/engine/memory_store.hpp"
#include "storage/identity.hpp"
#include "storage/model/initial_model.hpp"

namespace gleaner {
namespace {

constexpr const char* kModelPrefix = "model.";  // as gleaner export names the fields

Result<RunIdentity> identity_of(const InitialModel& file) {
  std::map<std::string, std::string> fields;
  std::map<std::string, std::string> settings = file.metadata();
  for (const auto& [name, value] : model_fields(ModelConfig())) {
    auto field = settings.extract(kModelPrefix + name);
    if (!field.empty()) fields[name] = std::move(field.mapped());
  }
  const Result<ModelConfig> model = model_from_fields(fields);
  if (!model) return model.error();
  RunIdentity identity{*model, std::move(settings)};
  identity.model.initial_fingerprint = file.fingerprint();
  if (auto valid = validate(identity.model); !valid) return valid.error();
  return identity;
}

}  // namespace

bool is_model_file(const std::string& path) {
  std::error_code error;
  return path.ends_with(".safetensors") && std::filesystem::is_regular_file(path, error);
}

Result<std::unique_ptr<RunStore>> open_exported_run(const std::string& path) {
  const auto file = InitialModel::open(path);
  // Stands for a store, and is damaged like one.
  if (!file) return Error{ErrorCode::kCorrupt, file.error().message};
  const InitialModel& model = **file;
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: it cannot be read like a store: {}", path, why)};
  };
  const Result<RunIdentity> identity = identity_of(model);
  if (!identity) return refuse(identity.error().message);
  const ModelConfig& config = identity->model;
  if (config.features != model.features() || config.labels != model.labels() ||
      config.hidden != model.hidden() || model.label_counts().size() != config.labels) {
    return refuse("what it says of its shape is not what its tensors are; gleaner export says it");
  }
  return RunStore::create_or_open(std::make_unique<MemoryStore>(), *identity, model.label_counts(),
                                  model.rows(config));
}

}  // namespace gleaner
