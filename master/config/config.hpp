// A master's settings, and how they are read. CONFIGURATION.md documents the keys, their defaults
// and their meaning.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/console/output.hpp"
#include "common/limits.hpp"
#include "common/model/model_fields.hpp"
#include "common/model/recipe.hpp"
#include "common/result.hpp"
#include "common/settings/settings_flags.hpp"
#include "common/settings/settings_value.hpp"
#include "master/core/core_config.hpp"

namespace gleaner {

// The model keys that a person has set. The recipe proposes a whole ModelConfig from the data, and
// the set keys replace its fields. One thread at a time.
class ModelOverrides {
 public:
  // Every key set to the value of `model`.
  static ModelOverrides all(const ModelConfig& model);

  // `member` is the member of a key.
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

  // `recipe` with the set keys in place. Does not validate.
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

// Precision and propensity-scored precision are reported at 1, 3 and 5.
inline constexpr std::uint32_t kEvaluationTopK = 5;
// Stands for all test examples.
inline constexpr std::uint64_t kEvaluateAll = 0;

// The holder of the input layer.
enum class InputHolder : std::uint8_t { kMaster, kVolunteers };

struct MasterConfig {
  struct Data {
    std::string train;
    std::string test;       // empty: no evaluation
    std::string init_from;  // model file that the run begins with; empty: none
    std::string cache_dir;  // of packed data sets; empty: beside the text files
    bool l2_normalise = true;
    friend bool operator==(const Data&, const Data&) = default;
  };

  struct Run {
    std::string store;
    std::uint32_t local = 0;               // volunteers inside the process
    std::optional<std::uint32_t> threads;  // of the master's worker and of each local volunteer
    InputHolder input_layer = InputHolder::kMaster;
    std::uint32_t fallback_local_s = 0;                     // 0: never
    std::uint64_t disk_reserve = std::uint64_t{256} << 20;  // bytes
    friend bool operator==(const Run&, const Run&) = default;
  };

  struct Backup {
    std::string folder;            // empty: no backups
    std::uint32_t every_min = 10;  // 0: every checkpoint
    std::uint32_t keep = 3;
    std::string command;  // run after each backup; empty: none
    friend bool operator==(const Backup&, const Backup&) = default;
  };

  struct Evaluation {
    // Test examples that an evaluation scores; kEvaluateAll: all; unset: see evaluation_sample.hpp.
    std::optional<std::uint64_t> sample;
    std::optional<std::uint32_t>
        patience;                  // evaluations without a higher P@1 that end the run; 0: none do
    bool keep_best = true;         // each best checkpoint so far is kept beside the store
    std::uint32_t keep_every = 0;  // checkpoints from one kept checkpoint to the next; 0: none
    bool new_test = false;  // begin figures again if the store has figures of another test file
    friend bool operator==(const Evaluation&, const Evaluation&) = default;
  };

  struct Network {
    std::string listen;                   // HOST:PORT; empty: only local volunteers
    std::string advertise;                // HOST or HOST:PORT in join lines; empty: chosen
    bool insecure = false;                // plain text, and anybody may join
    std::string http = "127.0.0.1:8080";  // HOST:PORT of the page; empty: none
    std::string serve_program = "auto";   // file of the portable volunteer; "off": none
    std::uint32_t farewell_s = 35;        // longer than volunteers wait between two attempts
    std::uint64_t send_queue_bytes = std::uint64_t{64} << 20;
    std::optional<double> limit_up;  // Mbit/s; unset: none
    std::optional<double> limit_down;
    std::uint32_t waiting_max = 256;  // connections that have not said Hello
    std::uint32_t waiting_per_address_max = 32;
    friend bool operator==(const Network&, const Network&) = default;
  };

  struct Output {
    LogFormat log_format = LogFormat::kText;
    bool quiet = false;
    bool verbose = false;
    friend bool operator==(const Output&, const Output&) = default;
  };

  Data data;
  Run run;
  Backup backup;
  std::uint64_t seed = 1;  // of the model
  RecipeKind recipe = RecipeKind::kAuto;
  double commit_share = kCommitFractionUsual;
  ModelOverrides model;
  Evaluation evaluation;
  Network network;
  CoreSettings core;
  Output output;

  friend bool operator==(const MasterConfig&, const MasterConfig&) = default;
};

// The table of keys, bound to `config`, which outlives it.
Settings master_settings(MasterConfig& config);

// Reads arguments (argv without the program's name) and the file that they name. If `to_print` is
// present, it is printed instead of running. A configuration that is to run has passed check().
struct MasterStart {
  MasterConfig config;
  TextToPrint to_print;
};

Result<MasterStart> load_master_config(const std::vector<std::string>& arguments);

// Refuses keys that contradict each other, and missing keys.
Result<void> check(const MasterConfig& config);

// The model to train: the recipe's model with the seed and the keys of `config`. Validated; an
// error names the key.
Result<ModelConfig> effective_model(const MasterConfig& config, const ModelConfig& recipe);

// Key and text of all settings that belong to the run, as a store remembers them, with model keys
// in effect. Leaves out settings that may differ from start to start (paths, network, threads), and
// evaluation.sample while it is unset.
std::map<std::string, std::string> effective_settings(const MasterConfig& config,
                                                      const ModelConfig& model);

// evaluation.sample of a run whose store remembers `settings`; nullopt when it is not among them.
std::optional<std::uint64_t> stored_evaluation_sample(
    const std::map<std::string, std::string>& settings);

// Compute threads of the master's worker and of each local volunteer on a machine with `cores`.
std::uint32_t effective_threads(const MasterConfig& config, std::uint32_t cores);

// The text of CONFIGURATION.md's lists.
std::string master_reference();

}  // namespace gleaner
