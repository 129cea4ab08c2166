#include "tools/predict/export_model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "common/model/model_fields.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/open_to_read.hpp"

namespace gleaner {
namespace {

Error refuse(const ModelPart& part, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", part.name, why)};
}

bool is_of_same_examples(const ModelConfig& a, const ModelConfig& b) {
  return a.data_fingerprint == b.data_fingerprint && a.points == b.points &&
         a.features == b.features && a.labels == b.labels;
}

constexpr const char* kExportFormat = "gleaner model 1";

// "all" where every shard of every round is the work of the master or of trusted volunteers, or was
// confirmed by an auditor; "adaptive 0.25" where that is so of a quarter of what strangers did, and
// "off" of nothing; "unknown" without receipts.
Result<std::string> audited_of(RunStore& run) {
  std::map<WorkVerdict, std::uint64_t> shards;
  bool is_all = true;
  for (RoundIndex round = 0; round < run.checkpoint(); ++round) {
    const auto receipts = run.receipts(round);
    if (!receipts) return receipts.error();
    if (receipts->shards.empty()) return std::string("unknown");
    for (const Receipt& receipt : receipts->shards) ++shards[receipt.verdict];
    is_all = is_all && receipts->unaudited.empty();
  }
  const std::uint64_t confirmed = shards[WorkVerdict::kConfirmed];
  const std::uint64_t unaudited = shards[WorkVerdict::kUnaudited];
  if (is_all && unaudited == 0) return std::string("all");
  if (confirmed == 0) return std::string("off");
  return fmt::format("adaptive {:.2f}",
                     static_cast<double>(confirmed) / static_cast<double>(confirmed + unaudited));
}

}  // namespace

Result<RunIdentity> identity_of(const std::vector<ModelPart>& parts) {
  const ModelPart& first = parts.front();
  RunIdentity joined = first.run->identity();
  if (parts.size() == 1) return joined;
  const Result<bool> is_normalised = trained_on_normalised_points(joined);
  if (!is_normalised) return refuse(first, is_normalised.error().message);
  joined.model.hidden = 0;
  joined.model.input_shards = 1;
  // The units of all share one scale.
  joined.model.activation_bits = ModelConfig().activation_bits;
  for (const ModelPart& part : parts) {
    const RunIdentity& identity = part.run->identity();
    if (!is_of_same_examples(identity.model, joined.model)) {
      return refuse(part, fmt::format("it was trained on other examples than {}, so their labels "
                                      "need not be the same",
                                      first.name));
    }
    const Result<bool> own = trained_on_normalised_points(identity);
    if (!own) return refuse(part, own.error().message);
    if (*own != *is_normalised) {
      return refuse(part,
                    fmt::format("its examples were {}scaled to length one, the examples of {} were "
                                "{}",
                                *own ? "" : "not ", first.name, *own ? "not" : "so"));
    }
    if (identity.model.hidden_units != joined.model.hidden_units) {
      return refuse(part,
                    fmt::format("its hidden units are of another kind than the hidden units of {} "
                                "(model.hidden_units)",
                                first.name));
    }
    joined.model.hidden += identity.model.hidden;
  }
  if (auto valid = validate(joined.model); !valid) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} models together make a network that is refused: {}", parts.size(),
                             valid.error().message)};
  }
  return joined;
}

Result<std::vector<ModelPart>> open_parts(const std::vector<std::string>& stores) {
  std::vector<ModelPart> parts;
  std::uint32_t first_unit = 0;
  for (const std::string& store : stores) {
    auto run = open_run_to_read(store);
    if (!run) return run.error();
    if ((*run)->checkpoint() == 0 && !begins_with_rows((*run)->identity().model)) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{}: the run has no checkpoint yet: wait until "
                               "the master has finished the first round",
                               store)};
    }
    Result<std::string> digest = (*run)->checkpoint_digest();
    if (!digest) return name_folder(digest.error(), store);
    parts.push_back({store, std::move(*run), first_unit, std::move(*digest)});
    first_unit += parts.back().run->identity().model.hidden;
  }
  return parts;
}

Result<std::map<std::string, std::string>> metadata_of(const RunIdentity& identity,
                                                       const std::vector<ModelPart>& parts) {
  std::map<std::string, std::string> metadata = identity.settings;
  // Other people get no paths of this machine.
  for (const char* const path : {"data.folder", "test.file"}) metadata.erase(path);
  // Settings repeat fields of the first model, also those that the whole does not use.
  for_each_model_field(
      [&](const auto& field) { metadata.erase("model." + std::string(field.name)); });
  for (const auto& [name, text] : model_fields(identity.model)) metadata["model." + name] = text;
  std::vector<std::string> checkpoints, digests, audits;
  for (const ModelPart& part : parts) {
    const auto& known = part.run->identity().settings;
    if (part.run->checkpoint() == 0 && known.contains("checkpoint")) {
      for (auto [name, list] : {std::pair("checkpoint", &checkpoints),
                                std::pair("digest", &digests), std::pair("audited", &audits)}) {
        list->push_back(known.contains(name) ? known.at(name) : "unknown");
      }
      continue;
    }
    checkpoints.push_back(std::to_string(part.run->checkpoint()));
    digests.push_back(part.digest);
    auto audited = audited_of(*part.run);
    if (!audited) return audited.error();
    audits.push_back(std::move(*audited));
  }
  metadata["format"] = kExportFormat;
  metadata.erase(kCalibrationKey);
  if (parts.size() == 1) {
    const Result<Calibration> calibration = calibration_of(*parts.front().run);
    if (!calibration) return calibration.error();
    if (calibration->is_fitted()) metadata[kCalibrationKey] = to_text(*calibration);
  }
  if (parts.size() > 1) metadata["models"] = std::to_string(parts.size());
  metadata["checkpoint"] = fmt::format("{}", fmt::join(checkpoints, " "));
  metadata["digest"] = fmt::format("{}", fmt::join(digests, " "));
  metadata["audited"] = fmt::format("{}", fmt::join(audits, " "));
  return metadata;
}

}  // namespace gleaner
