// A model as one file that other programs read: safetensors (a length, a JSON header, the numbers)
// or npz (a ZIP of NumPy arrays, not compressed). The file is mapped, so that tensors are filled in
// any order in constant memory, and takes its place when it is whole. One thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace gleaner {

enum class TensorType : std::uint8_t { kFloat32, kFloat64, kUint32, kUint8 };

// Tensors by which a model says what its numbers mean: names of labels and features, one a line;
// words.json of the data set; and each feature's rarity, from which its value in a text follows.
inline constexpr const char* kLabelNamesTensor = "label_names";
inline constexpr const char* kFeatureNamesTensor = "feature_names";
inline constexpr const char* kWordsTensor = "words";
inline constexpr const char* kIdfTensor = "idf";

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<std::uint64_t> shape;

  [[nodiscard]] std::uint64_t bytes() const;
};

enum class ModelFileForm : std::uint8_t { kSafetensors, kNpz };

class ModelFile {
 public:
  // Makes `path`.part with room for all of it; zero until it is filled. `metadata` goes into the
  // header of safetensors; npz has no place for it but a tensor.
  static Result<std::unique_ptr<ModelFile>> create(
      const std::string& path, ModelFileForm form, std::vector<TensorSpec> tensors,
      const std::map<std::string, std::string>& metadata);
  // Removes what was not finished.
  ~ModelFile();
  ModelFile(const ModelFile&) = delete;
  ModelFile& operator=(const ModelFile&) = delete;

  // The tensor's bytes, little endian, row by row.
  [[nodiscard]] std::span<std::uint8_t> data(std::size_t tensor);

  [[nodiscard]] std::span<float> floats(std::size_t tensor) {
    const std::span<std::uint8_t> bytes = data(tensor);
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  [[nodiscard]] std::uint64_t bytes() const { return size_; }

  // Everything is filled: puts the file in its place, durably.
  Result<void> finish();

 private:
  ModelFile() = default;
  void plan_safetensors(const std::map<std::string, std::string>& metadata);
  void plan_npz();
  void finish_npz();

  std::string path_;
  std::string part_path_;
  ModelFileForm form_ = ModelFileForm::kSafetensors;
  std::vector<TensorSpec> tensors_;
  std::vector<std::uint64_t> offsets_;  // of the tensors' data
  std::vector<std::string> heads_;      // what stands before each tensor's data
  std::vector<std::uint64_t> head_offsets_;
  std::uint64_t size_ = 0;
  int file_ = -1;
  std::uint8_t* map_ = nullptr;
};

}  // namespace gleaner
