// Refuses settings that contradict each other, and a model that cannot be trained.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "common/host_port.hpp"
#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "master/config/config.hpp"

namespace gleaner {
namespace {

Error invalid(std::string sentence) {
  return {ErrorCode::kInvalidArgument, std::move(sentence)};
}

Result<void> check_page(const MasterConfig& c) {
  if (c.network.http.empty()) return {};
  const std::string host = parse_host_port(c.network.http)->host;
  if (is_loopback(host)) return {};
  if (!is_numeric(host)) {
    return invalid(fmt::format(
        "network.http is {}: give an address in numbers, such as 127.0.0.1:8080 for this machine "
        "alone or 0.0.0.0:8080 for others too, or off.",
        c.network.http));
  }
  if (!c.network.listen.empty()) return {};
  return invalid(fmt::format(
      "network.http is {}: other machines see the page with an invite, and invites take --listen. "
      "Without it, give 127.0.0.1:8080 and forward the port there: ssh -L 8080:127.0.0.1:8080 "
      "THIS-HOST.",
      c.network.http));
}

}  // namespace

Result<void> check(const MasterConfig& c) {
  if (c.data.train.empty()) {
    return invalid("There is nothing to train on: give --train FILE (key data.train).");
  }
  if (c.run.store.empty()) {
    return invalid("There is nowhere to keep the run: give --store DIR (key run.store).");
  }
  if (c.core.purpose.size() > kPurposeBytesMax) {
    return invalid(fmt::format("run.purpose has {} bytes: give at most {}.", c.core.purpose.size(),
                               kPurposeBytesMax));
  }
  if (c.run.local == 0 && c.network.listen.empty()) {
    return invalid(
        "Nobody could train: give --local N for volunteers inside this process, or --listen "
        "HOST:PORT for volunteers that come over the network.");
  }
  if (c.network.listen.empty() && !c.network.advertise.empty()) {
    return invalid(
        "network.advertise names a host for join lines, and without --listen HOST:PORT nobody "
        "joins: give both.");
  }
  if (c.network.listen.empty() && c.core.min_volunteers > c.run.local) {
    return invalid(fmt::format(
        "run.min_volunteers is {}: without --listen there are only {} local volunteers, so "
        "training would never start.",
        c.core.min_volunteers, c.run.local));
  }
  if (c.run.fallback_local_s > 0 && c.run.local > 0) {
    return invalid(
        "run.fallback_local_s and run.local exclude each other: with --local N there are always "
        "volunteers in this process.");
  }
  if (c.run.fallback_local_s > 0 && c.core.min_volunteers > 1) {
    return invalid(fmt::format(
        "run.min_volunteers is {}: the one volunteer of run.fallback_local_s could not start the "
        "run, so give one of them.",
        c.core.min_volunteers));
  }
  if (auto page = check_page(c); !page) return page;
  if (c.core.silence <= 2 * c.core.heartbeat) {
    return invalid(fmt::format(
        "network.silence_ms is {}: it must be more than twice network.heartbeat_ms ({}).",
        c.core.silence.count(), c.core.heartbeat.count()));
  }
  if (c.output.quiet && c.output.verbose) {
    return invalid("output.quiet and output.verbose exclude each other: give one of them.");
  }
  return {};
}

Result<ModelConfig> effective_model(const MasterConfig& config, const ModelConfig& recipe) {
  ModelConfig model = config.model.applied_to(recipe);
  model.seed = config.seed;
  if (auto valid = validate(model); !valid) {
    // The sentence begins with the field's name.
    const std::string& sentence = valid.error().message;
    const std::string field = sentence.substr(0, sentence.find(' '));
    bool is_key = false;
    for_each_model_key([&](const auto& known) { is_key = is_key || known.name == field; });
    if (is_key) return invalid("model." + sentence);
    return Error{ErrorCode::kInvalidData, "the training file cannot be used: " + sentence};
  }
  return model;
}

}  // namespace gleaner
