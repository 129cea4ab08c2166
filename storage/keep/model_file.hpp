// A model as one file for other programs: safetensors (a length, a JSON header, the numbers) or npz
// (a ZIP of uncompressed NumPy arrays). The file is mapped, so tensors are written in any order in
// constant memory; it appears at its path when it is complete. One thread.
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

struct TensorTypeNames {
  std::uint64_t bytes;
  const char* safetensors;
  const char* numpy;
};

TensorTypeNames type_names(TensorType type);

struct TensorSpec {
  std::string name;
  TensorType type = TensorType::kFloat32;
  std::vector<std::uint64_t> shape;

  [[nodiscard]] std::uint64_t bytes() const;
};

enum class ModelFileForm : std::uint8_t { kSafetensors, kNpz };

class ModelFile {
 public:
  // Tensors begin at multiples of this, so that readers may map them.
  static constexpr std::uint64_t kAlignment = 64;

  // Makes `path`.part with room for all tensors, filled with zeros. `metadata` goes into the header
  // of safetensors; npz can only hold it as a tensor.
  static Result<std::unique_ptr<ModelFile>> create(
      const std::string& path, ModelFileForm form, std::vector<TensorSpec> tensors,
      const std::map<std::string, std::string>& metadata);
  // Removes an unfinished file.
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

  // All tensors are filled: moves the file to its path, durably.
  Result<void> finish();

 private:
  static std::uint64_t aligned(std::uint64_t offset) {
    return (offset + kAlignment - 1) / kAlignment * kAlignment;
  }

  ModelFile() = default;
  void plan_safetensors(const std::map<std::string, std::string>& metadata);
  void plan_npz();
  void finish_npz();

  std::string path_;
  std::string part_path_;
  ModelFileForm form_ = ModelFileForm::kSafetensors;
  std::vector<TensorSpec> tensors_;
  std::vector<std::uint64_t> offsets_;  // where each tensor's data begins
  std::vector<std::string> heads_;      // bytes before each tensor's data
  std::vector<std::uint64_t> head_offsets_;
  std::uint64_t size_ = 0;
  int file_ = -1;
  std::uint8_t* map_ = nullptr;
};

}  // namespace gleaner
