#include <catch2/catch.hpp>
#include <cmath>

#include "common/model/model_fields.hpp"
#include "storage/run_store.hpp"
#include "tests/unit/storage/check_result.hpp"
#include "tests/unit/storage/small_run.hpp"

namespace gleaner {
namespace {

using test::check_error;
using test::require_value;

std::map<std::string, std::string> fields_of(const ModelConfig& model) {
  std::map<std::string, std::string> fields;
  for (const auto& [name, text] : model_fields(model)) fields[name] = text;
  return fields;
}

TEST_CASE("identity: a configuration survives being written as text", "[storage]") {
  ModelConfig model = test::small_identity().model;
  model.seed = ~std::uint64_t{0};
  model.sampling = Sampling::kRandom;
  model.output_rate = std::nextafter(0.1F, 1.0F);
  model.epsilon = 1.17549435e-30F;
  model.gradient_step_log2 = -7;
  CHECK(require_value(model_from_fields(fields_of(model))) == model);
}

TEST_CASE("identity: a missing field has its default, an unknown one is another version",
          "[storage]") {
  std::map<std::string, std::string> fields = fields_of(test::small_identity().model);
  fields.erase("dropout");
  CHECK(require_value(model_from_fields(fields)).dropout == ModelConfig{}.dropout);
  fields["momentum"] = "0.9";
  check_error(model_from_fields(fields), ErrorCode::kVersion, "version of Gleaner");
}

TEST_CASE("identity: unreadable and impossible fields are named", "[storage]") {
  for (const auto& [name, text] : model_fields(test::small_identity().model)) {
    for (const char* wrong : {"", "x", " 1", "1 ", "-"}) {
      auto fields = fields_of(test::small_identity().model);
      fields[name] = wrong;
      check_error(model_from_fields(fields), ErrorCode::kCorrupt, name);
    }
  }
  auto fields = fields_of(test::small_identity().model);
  fields["hidden"] = "17";
  check_error(model_from_fields(fields), ErrorCode::kCorrupt, "hidden is 17");
}

TEST_CASE("identity: equal identities and more epochs are no difference", "[storage]") {
  const RunIdentity stored = test::small_identity();
  RunIdentity wanted = stored;
  CHECK(identity_differences(wanted, stored).empty());
  wanted.model.epochs = 7;
  wanted.settings["run.epochs"] = "7";
  CHECK(identity_differences(wanted, stored).empty());
}

TEST_CASE("identity: differences name the key people know and both values", "[storage]") {
  const RunIdentity stored = test::small_identity();
  RunIdentity wanted = stored;
  wanted.model.output_rate = 0.01F;
  wanted.settings["learning.output_rate"] = "0.01";
  wanted.settings["evaluation.every"] = "5";
  wanted.settings["evaluation.added_later"] = "5";
  wanted.model.seed = 2;
  wanted.model.sampling = Sampling::kAll;
  CHECK(identity_differences(wanted, stored) ==
        std::vector<std::string>{"seed is 2 here and 1 in the store",
                                 "sampling is all here and lsh in the store",
                                 "learning.output_rate is 0.01 here and 0.003 in the store",
                                 "evaluation.every is 5 here and 2 in the store"});
  wanted = stored;
  wanted.model.epochs = 1;
  CHECK(identity_differences(wanted, stored) ==
        std::vector<std::string>{"epochs is 1 here and 2 in the store (it can only grow)"});
}

TEST_CASE("identity: a field that only one of two runs uses is their only difference",
          "[storage]") {
  const RunIdentity stored = test::small_identity();
  RunIdentity wanted = stored;
  wanted.model.staleness_rise = 3;
  CHECK(identity_differences(wanted, stored) ==
        std::vector<std::string>{"staleness_rise is 3 here and 0 in the store"});
  CHECK(identity_differences(stored, wanted) ==
        std::vector<std::string>{"staleness_rise is 0 here and 3 in the store"});
}

TEST_CASE("identity: a field that is left out at its default names another run when it is set",
          "[storage]") {
  RunIdentity identity = test::small_identity();
  const std::string name = run_name(identity);
  CHECK_FALSE(fields_of(identity.model).contains("staleness_rise"));
  CHECK_FALSE(fields_of(identity.model).contains("activation_bits"));
  const bool has_bits = GENERATE(false, true);
  if (has_bits) identity.model.activation_bits = 3;
  if (!has_bits) identity.model.staleness_rise = 3;
  CHECK(fields_of(identity.model).at(has_bits ? "activation_bits" : "staleness_rise") == "3");
  CHECK(run_name(identity) != name);
  CHECK(require_value(model_from_fields(fields_of(identity.model))) == identity.model);
}

}  // namespace
}  // namespace gleaner
