#include "tools/keep/verify_deep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "common/console/terminal.hpp"
#include "common/counter_random.hpp"
#include "common/data/open_or_pack.hpp"
#include "common/machine_facts.hpp"
#include "common/model/run_plan.hpp"
#include "common/time.hpp"
#include "master/in_process_training.hpp"
#include "master/shell/worker.hpp"
#include "storage/engine/memory_store.hpp"
#include "storage/engine/rocks_store.hpp"
#include "storage/engine/store_folder.hpp"
#include "storage/infer/stored_model.hpp"
#include "storage/keep/initial_model.hpp"
#include "storage/keep/kept_checkpoints.hpp"
#include "storage/keep/wide_start.hpp"
#include "tools/cli/console.hpp"
#include "tools/cli/store_access.hpp"
#include "volunteer/executor.hpp"

namespace gleaner {
namespace {

constexpr const char* kFromStart = "start";

Error cannot(const std::string& why) {
  return {ErrorCode::kInvalidArgument, "--deep cannot be done: " + why};
}

Result<std::unique_ptr<PackedDataset>> open_training_data(const RunIdentity& identity,
                                                          const std::string& path) {
  if (path.empty()) return cannot("name the run's training file as --train");
  const Result<bool> is_normalised = trained_on_normalised_points(identity);
  if (!is_normalised) return is_normalised.error();
  PackOptions options;
  options.normalize = *is_normalised;
  auto train = open_or_pack(path, options);
  if (!train) return train;
  if (auto intact = (*train)->verify_all(); !intact) return intact.error();
  if ((*train)->fingerprint() == identity.model.data_fingerprint) return train;
  return Error{ErrorCode::kInvalidData,
               fmt::format("{} is not what the run was trained on: its fingerprint is {:016x}, the "
                           "run's {:016x}",
                           path, (*train)->fingerprint(), identity.model.data_fingerprint)};
}

// Where to begin, when nobody says it: the latest kept checkpoint, or one of all by chance.
Result<std::string> chosen_base(const std::string& store, const DeepRequest& request,
                                const RunStore& checked) {
  std::vector<std::string> bases = kept_before(store, checked.checkpoint());
  if (request.sample) {
    if (checked.identity().model.initial_fingerprint == 0) bases.emplace_back(kFromStart);
    if (!bases.empty()) {
      return bases[counter_random(*request.sample, Purpose::kSplit, 0) % bases.size()];
    }
  }
  if (!bases.empty()) return bases.back();
  return cannot(
      fmt::format("no checkpoint before {} is kept; `gleaner checkpoint keep {} NAME` "
                  "keeps one for the next time, and --from start trains from the "
                  "beginning of the run",
                  checked.checkpoint(), store));
}

// The digest of checkpoint `round`, as the run's history has it; empty when it does not.
Result<std::string> history_digest(RunStore& run, RoundIndex round) {
  const auto history = run.history();
  if (!history) return history.error();
  for (const RoundRecord& record : *history) {
    if (record.checkpoint != round || record.rows_digest == 0) continue;
    return fmt::format("{:016x}", record.rows_digest);
  }
  return std::string();
}

// A run that may be trained on, at the earlier checkpoint.
Result<std::unique_ptr<RunStore>> open_base(const std::string& from, const std::string& scratch,
                                            const RunIdentity& identity,
                                            const PackedDataset& train) {
  std::unique_ptr<Store> store;
  std::unique_ptr<WideStart> start;
  if (from != kFromStart) {
    if (auto linked = link_store(from, scratch); !linked) return linked.error();
    auto opened = open_rocks_store(scratch, OpenMode::kReadWrite);
    if (!opened) return opened.error();
    store = std::move(*opened);
  } else {
    store = std::make_unique<MemoryStore>();
    if (is_wide(identity.model)) {
      auto opened = WideStart::open(identity.model, train);
      if (!opened) return opened.error();
      start = std::move(*opened);
    }
  }
  auto run = RunStore::create_or_open(std::move(store), identity, count_labels(train),
                                      start ? start->rows() : InitialRows());
  if (!run) return cannot(fmt::format("{}: {}", from, run.error().message));
  return run;
}

void name_shards(const std::vector<ShardDigest>& stored, const std::vector<ShardDigest>& trained,
                 const DeepOutcome& outcome, Findings& findings) {
  for (std::size_t s = 0; s < stored.size(); ++s) {
    if (stored[s] == trained[s]) continue;
    findings.add("deep", fmt::format("shard {}", s),
                 fmt::format("training from checkpoint {} gives other rows", outcome.base));
  }
}

Result<void> compare(RunStore& checked, RunStore& retrained, DeepOutcome& outcome,
                     Findings& findings) {
  const bool is_last = outcome.checkpoint == checked.checkpoint();
  auto digest = is_last ? checked.checkpoint_digest() : history_digest(checked, outcome.checkpoint);
  if (!digest) return digest.error();
  auto again =
      is_last ? retrained.checkpoint_digest() : history_digest(retrained, outcome.checkpoint);
  if (!again) return again.error();
  outcome.digest = std::move(*digest);
  outcome.retrained_digest = std::move(*again);
  if (outcome.digest == outcome.retrained_digest) return {};
  findings.add(
      "deep", fmt::format("checkpoint {}", outcome.checkpoint),
      fmt::format("training gives another one: its digest is {}", outcome.retrained_digest));
  if (!is_last) return {};
  const auto stored = checked.shard_digests();
  if (!stored) return stored.error();
  const auto trained = retrained.shard_digests();
  if (!trained) return trained.error();
  name_shards(*stored, *trained, outcome, findings);
  return {};
}

// How far to train; what is there must be able to be compared.
Result<RoundIndex> target_of(const DeepRequest& request, RoundIndex base, RunStore& checked) {
  const RoundIndex last = checked.checkpoint();
  const std::uint32_t rounds = request.sample && request.rounds == 0 ? 1 : request.rounds;
  const RoundIndex target = rounds == 0 || rounds > last - base ? last : base + rounds;
  if (target == last) return target;
  const Result<std::string> digest = history_digest(checked, target);
  if (!digest) return digest.error();
  if (!digest->empty()) return target;
  return cannot(
      fmt::format("the history has no digest of checkpoint {}, since an older program "
                  "folded it: train all rounds, without --rounds and --sample",
                  target));
}

}  // namespace

Result<DeepOutcome> verify_deep(const std::string& store, const DeepRequest& request,
                                Findings& findings) {
  const ScratchFolder scratch(without_slash(store) + ".deep");
  // Both are of one moment, while a master may go on.
  if (auto linked = link_store(store, scratch.path() + "/checked"); !linked) return linked.error();
  const auto checked = open_run_to_read(scratch.path() + "/checked");
  if (!checked) return checked.error();
  const RunIdentity& identity = (*checked)->identity();
  if (auto trainable = check_trainable(identity); !trainable) return trainable.error();
  DeepOutcome outcome;
  outcome.checkpoint = (*checked)->checkpoint();
  outcome.from = request.from;
  if (outcome.from.empty()) {
    Result<std::string> chosen = chosen_base(store, request, **checked);
    if (!chosen) return chosen.error();
    outcome.from = std::move(*chosen);
  }
  if (outcome.from == kFromStart && identity.model.initial_fingerprint != 0) {
    return cannot(
        "the run began with a model from a file, so there is no starting again without it");
  }
  const auto train = open_training_data(identity, request.train);
  if (!train) return train.error();
  auto run = open_base(outcome.from, scratch.path() + "/base", identity, **train);
  if (!run) return run.error();
  outcome.base = (*run)->checkpoint();
  if (outcome.base >= outcome.checkpoint) {
    return cannot(fmt::format("{} is at checkpoint {}, which is not before {}", outcome.from,
                              outcome.base, outcome.checkpoint));
  }
  const Result<RoundIndex> target = target_of(request, outcome.base, **checked);
  if (!target) return target.error();
  outcome.checkpoint = *target;
  const RunPlan plan(identity.model);
  outcome.batches = plan.round_begin(outcome.checkpoint) - plan.round_begin(outcome.base);
  ThreadPool pool(request.threads != 0 ? request.threads : machine_facts().cores);
  const Instant started = monotonic_now();
  {
    ProgressLine progress("Training again:");
    std::uint64_t done = 0;
    auto trained =
        train_in_process(**run, **train, outcome.checkpoint, (*checked)->rate_cuts(), pool,
                         [&] { progress.show(++done, outcome.batches, "batches"); });
    if (!trained) return trained.error();
  }
  outcome.seconds = static_cast<double>((monotonic_now() - started).count()) / 1e6;
  if (auto compared = compare(**checked, **run, outcome, findings); !compared) {
    return compared.error();
  }
  return outcome;
}

void add_deep(Report& report, const DeepOutcome& outcome) {
  const bool is_same = outcome.digest == outcome.retrained_digest;
  report.section("deep", "Trained again");
  report.fact("from", "from", cell_text(outcome.from));
  report.fact("base", "from checkpoint", cell_count(outcome.base));
  report.fact("checkpoint", "to checkpoint", cell_count(outcome.checkpoint));
  report.fact("batches", "batches", cell_count(outcome.batches));
  report.fact("seconds", "took", cell_duration(outcome.seconds));
  report.fact("digest", "digest", cell_text(outcome.digest));
  report.fact("retrained_digest", "trained again", cell_text(outcome.retrained_digest));
  report.fact("is_same", "models", {is_same, is_same ? "the same" : "different"});
}

}  // namespace gleaner
