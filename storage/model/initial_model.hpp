// A model that a run begins with: a safetensors file as `gleaner export` writes it. Labels and
// features that the file does not have begin as in any run. The file is mapped; any one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/model/model_config.hpp"
#include "common/result.hpp"
#include "storage/run_store.hpp"

namespace gleaner {

class InitialModel {
 public:
  // Errors name the file and the tensor. kInvalidData for a file that is no such model.
  static Result<std::unique_ptr<InitialModel>> open(const std::string& path);
  ~InitialModel();
  InitialModel(const InitialModel&) = delete;
  InitialModel& operator=(const InitialModel&) = delete;

  [[nodiscard]] std::uint32_t features() const { return features_; }

  [[nodiscard]] std::uint32_t hidden() const { return hidden_; }

  // As the file's metadata have it; rectified where they do not say.
  [[nodiscard]] HiddenUnits hidden_units() const;

  [[nodiscard]] std::uint32_t labels() const { return labels_; }

  // The file's own account of itself, which nobody believes.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Training points of each label, as the file has them; empty when it does not.
  [[nodiscard]] const std::vector<std::uint32_t>& label_counts() const { return label_counts_; }

  // A fingerprint of shapes and numbers, whatever else the file says; never 0.
  [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

  // Refuses a configuration that has another number or kind of hidden units, or fewer features or
  // labels.
  [[nodiscard]] Result<void> check_fits(const ModelConfig& model) const;

  // The rows as the run's shards have them. Requires check_fits(model); this outlives it.
  [[nodiscard]] InitialRows rows(const ModelConfig& model) const;

 private:
  class RowMaker;
  struct Header;
  InitialModel() = default;
  [[nodiscard]] Error refuse(const std::string& what) const;
  Result<void> read_header();
  Result<void> read_layers(const Header& header);
  Result<void> read_label_counts(const Header& header);
  void take_fingerprint();

  std::string path_;
  const std::uint8_t* map_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint32_t features_ = 0, hidden_ = 0, labels_ = 0;
  std::uint64_t fingerprint_ = 0;
  std::map<std::string, std::string> metadata_;
  std::vector<std::uint32_t> label_counts_;
  // Little-endian floats within the map, perhaps not aligned.
  const std::uint8_t* input_weight_ = nullptr;   // features x hidden
  const std::uint8_t* input_bias_ = nullptr;     // hidden
  const std::uint8_t* output_weight_ = nullptr;  // labels x hidden
  const std::uint8_t* output_bias_ = nullptr;    // labels
};

}  // namespace gleaner
