// A data set being written, in whichever form its name asks for. One owner; not thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/data/packed_writer.hpp"
#include "common/data/point_writer.hpp"
#include "common/result.hpp"

namespace gleaner {

enum class SetForm : std::uint8_t { kXc, kLibsvm, kPacked };

// By the name's ending, .gz and .zst apart: .gleaner is packed, .svm and .libsvm are libsvm text,
// anything else XC text.
SetForm form_of_name(std::string path);
const char* form_name(SetForm form);

// Rows that are packed may be scaled already, and would be scaled again.
Result<void> refuse_packing_twice(const std::string& source, SetForm form);

struct SetOutputOptions {
  SetForm form = SetForm::kXc;
  std::uint32_t first_feature = 1;  // of libsvm text
  bool normalize = true;            // of packed files
};

class SetOutput {
 public:
  // XC text announces how many points will be added.
  static Result<std::unique_ptr<SetOutput>> create(const std::string& path,
                                                   const SetOutputOptions& options,
                                                   std::uint64_t points, Dimensions dimensions);

  // `point` as a parser leaves it.
  Result<void> add(const Point& point);
  Result<void> commit(const Irregularities& irregularities, AtomicFile::Existing existing);

 private:
  SetOutput(const SetOutputOptions& options, Dimensions dimensions)
      : options_(options), dimensions_(dimensions) {}

  SetOutputOptions options_;
  Dimensions dimensions_;
  std::unique_ptr<TextOutput> text_;  // one of the two
  std::unique_ptr<PackedWriter> packed_;
  std::string line_;
};

}  // namespace gleaner
