// A safetensors file for reading: a length, a JSON header with each tensor's type, shape and place,
// and the numbers. The file is mapped, and everything in it is checked before use. Immutable; any
// thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/files.hpp"
#include "common/result.hpp"

namespace gleaner {

// Tensors that give the numbers a meaning: names of labels and features, one per line; words.json
// of the data set; and each feature's rarity, from which its value in a text follows.
inline constexpr const char* kLabelNamesTensor = "label_names";
inline constexpr const char* kLabelTitlesTensor = "label_titles";  // kLabelTitlesFile
inline constexpr const char* kFeatureNamesTensor = "feature_names";
inline constexpr const char* kWordsTensor = "words";
inline constexpr const char* kIdfTensor = "idf";

class TensorFile {
 public:
  // Little-endian 32-bit numbers in the map, perhaps unaligned.
  struct Tensor {
    std::vector<std::uint64_t> shape;
    const std::uint8_t* data = nullptr;

    // 0 for a missing tensor.
    [[nodiscard]] std::uint64_t count() const;

    [[nodiscard]] std::uint64_t bytes() const { return count() * sizeof(std::uint32_t); }

    template <typename T>
    [[nodiscard]] T at(std::uint64_t index) const {
      static_assert(sizeof(T) == sizeof(std::uint32_t));
      T value;
      std::memcpy(&value, data + index * sizeof(T), sizeof(T));
      return value;
    }
  };

  // Errors name the file. kInvalidData for a file that is not such a model.
  static Result<std::unique_ptr<TensorFile>> open(const std::string& path);
  ~TensorFile();
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] bool has(const char* name) const;

  // A tensor of type F32 or U32 with `dimensions` extents, each from 1 to `extent_max`, and
  // matching bytes.
  [[nodiscard]] Result<Tensor> tensor(const char* name, const char* type, std::size_t dimensions,
                                      std::uint64_t extent_max) const;

  // The bytes of a one-dimensional tensor of type U8; empty without such a tensor. kInvalidData for
  // another type or shape.
  [[nodiscard]] Result<std::string_view> text(const char* name) const;

  // The file's metadata, which are not verified.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // The error kInvalidData; the file's name precedes `what`.
  [[nodiscard]] Error refuse(const std::string& what) const;

 private:
  struct Header;
  TensorFile();
  Result<void> read_header();

  std::string path_;
  os::FileView map_;
  std::unique_ptr<Header> header_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace gleaner
