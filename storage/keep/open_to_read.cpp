#include "storage/keep/open_to_read.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/keep/backup.hpp"
#include "storage/keep/initial_model.hpp"

namespace gleaner {
namespace {

constexpr const char* kModelPrefix = "model.";  // prefix of the model's fields in metadata

Result<RunIdentity> identity_of(const InitialModel& file) {
  std::map<std::string, std::string> fields;
  std::map<std::string, std::string> settings = file.metadata();
  for_each_model_field([&](const auto& field) {
    auto setting = settings.extract(std::string(kModelPrefix) + field.name);
    if (!setting.empty()) fields[field.name] = std::move(setting.mapped());
  });
  const Result<ModelConfig> model = model_from_fields(fields);
  if (!model) return model.error();
  RunIdentity identity{*model, std::move(settings)};
  identity.model.initial_fingerprint = file.fingerprint();
  if (auto valid = validate(identity.model); !valid) return valid.error();
  return identity;
}

}  // namespace

std::optional<BackupWords> as_backup(const std::string& words) {
  if (holds_backups(words)) return BackupWords{words, 0};
  const std::size_t at = words.rfind('@');
  if (at == std::string::npos || !holds_backups(words.substr(0, at))) return std::nullopt;
  BackupWords backup{words.substr(0, at), 0};
  const char* const end = words.data() + words.size();
  const auto parsed = std::from_chars(words.data() + at + 1, end, backup.number);
  if (parsed.ec != std::errc() || parsed.ptr != end || backup.number == 0) return std::nullopt;
  return backup;
}

bool is_model_file(const std::string& path) {
  std::error_code error;
  return path.ends_with(".safetensors") && std::filesystem::is_regular_file(path, error);
}

Result<std::unique_ptr<RunStore>> open_exported_run(const std::string& path) {
  const auto file = InitialModel::open(path);
  // The file takes the place of a store, so its damage is reported like a store's.
  if (!file) return Error{ErrorCode::kCorrupt, file.error().message};
  const InitialModel& model = **file;
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("{}: it cannot be read like a store: {}", path, why)};
  };
  Result<RunIdentity> identity = identity_of(model);
  if (!identity) return refuse(identity.error().message);
  const ModelConfig& config = identity->model;
  // No label of a wide model need have the last features.
  const bool has_features =
      is_wide(config) ? config.features >= model.features() : config.features == model.features();
  if (!has_features || config.labels != model.labels() || config.hidden != model.hidden() ||
      model.label_counts().size() != config.labels) {
    return refuse("its metadata do not match its tensors: use a file that gleaner export wrote");
  }
  if (is_wide(config)) {
    const auto sizes = wide_sizes(config, [&model](std::uint32_t label, WideRow& row) {
      return model.read_wide_row(label, row);
    });
    if (!sizes) return refuse(sizes.error().message);
    identity->model.wide_rows = sizes->rows;
    if (sizes->rows > kWideRowsMax) return refuse("a shard would have too many rows");
  }
  return RunStore::create_or_open(std::make_unique<MemoryStore>(), *identity, model.label_counts(),
                                  model.rows(config));
}

Error name_folder(Error error, const std::string& folder) {
  if (error.message.find(folder) == std::string::npos) {
    error.message = fmt::format("{}: {}", folder, error.message);
  }
  return error;
}

Result<std::unique_ptr<Store>> open_store_to_read(const std::string& words) {
  const std::optional<BackupWords> named = as_backup(words);
  if (!named) return open_rocks_store(words, OpenMode::kReadOnly);
  const auto backups = BackupFolder::open(named->folder, BackupAccess::kRead);
  if (!backups) return backups.error();
  const Result<Backup> backup = (*backups)->choose(named->number);
  if (!backup) return backup.error();
  return (*backups)->open_store(backup->number);
}

Result<std::unique_ptr<RunStore>> open_run_to_read(const std::string& folder) {
  if (is_model_file(folder)) return open_exported_run(folder);
  auto store = open_store_to_read(folder);
  if (!store) return name_folder(store.error(), folder);
  auto run = RunStore::open(std::move(*store));
  if (!run) return name_folder(run.error(), folder);
  return run;
}

}  // namespace gleaner
