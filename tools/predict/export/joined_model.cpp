#include "tools/predict/export/joined_model.hpp"

#include <fmt/format.h>

#include "master/predict/stored_model.hpp"

namespace gleaner {
namespace {

Error refuse(const JoinedPart& part, const std::string& why) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", part.name, why)};
}

bool is_of_same_points(const ModelConfig& a, const ModelConfig& b) {
  return a.data_fingerprint == b.data_fingerprint && a.points == b.points &&
         a.features == b.features && a.labels == b.labels;
}

}  // namespace

Result<RunIdentity> joined_identity(const std::vector<JoinedPart>& parts) {
  const JoinedPart& first = parts.front();
  RunIdentity joined = *first.identity;
  if (parts.size() == 1) return joined;
  const Result<bool> is_normalised = trained_on_normalised_points(joined);
  if (!is_normalised) return refuse(first, is_normalised.error().message);
  joined.model.hidden = 0;
  joined.model.input_shards = 1;
  for (const JoinedPart& part : parts) {
    if (!is_of_same_points(part.identity->model, joined.model)) {
      return refuse(part, fmt::format("it was trained on other examples than {}, so their labels "
                                      "need not be the same",
                                      first.name));
    }
    const Result<bool> own = trained_on_normalised_points(*part.identity);
    if (!own) return refuse(part, own.error().message);
    if (*own != *is_normalised) {
      return refuse(part, fmt::format("its examples were {}scaled to length one, those of {} were "
                                      "{}",
                                      *own ? "" : "not ", first.name, *own ? "not" : "so"));
    }
    if (part.identity->model.hidden_units != joined.model.hidden_units) {
      return refuse(part, fmt::format("its hidden units are of another kind than those of {} "
                                      "(model.hidden_units)",
                                      first.name));
    }
    joined.model.hidden += part.identity->model.hidden;
  }
  if (auto valid = validate(joined.model); !valid) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} models together make a network that is refused: {}", parts.size(),
                             valid.error().message)};
  }
  return joined;
}

}  // namespace gleaner
