#include "storage/model/exported_run.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "common/limits.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/identity.hpp"
#include "storage/model/initial_model.hpp"
#include "storage/model/wide_rows.hpp"

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
  Result<RunIdentity> identity = identity_of(model);
  if (!identity) return refuse(identity.error().message);
  const ModelConfig& config = identity->model;
  // Wide rows need not have the last features.
  const bool has_features =
      is_wide(config) ? config.features >= model.features() : config.features == model.features();
  if (!has_features || config.labels != model.labels() || config.hidden != model.hidden() ||
      model.label_counts().size() != config.labels) {
    return refuse("what it says of its shape is not what its tensors are; gleaner export says it");
  }
  if (is_wide(config)) {
    const auto rows = wide_rows_max(config, [&model](std::uint32_t label, WideRow& row) {
      return model.read_wide_row(label, row);
    });
    if (!rows) return refuse(rows.error().message);
    identity->model.wide_rows = *rows;
    if (*rows > kWideRowsMax) return refuse("a shard would have too many rows");
  }
  return RunStore::create_or_open(std::make_unique<MemoryStore>(), *identity, model.label_counts(),
                                  model.rows(config));
}

}  // namespace gleaner
