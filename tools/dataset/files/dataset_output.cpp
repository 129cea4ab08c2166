#include "tools/dataset/files/dataset_output.hpp"

#include "common/data/packed_dataset.hpp"

namespace gleaner {

SetForm form_of_name(std::string path) {
  for (const char* ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) path.resize(path.size() - std::string_view(ending).size());
  }
  if (path.ends_with(".gleaner")) return SetForm::kPacked;
  return path.ends_with(".svm") || path.ends_with(".libsvm") ? SetForm::kLibsvm : SetForm::kXc;
}

const char* form_name(SetForm form) {
  if (form == SetForm::kPacked) return "packed";
  return form == SetForm::kXc ? "XC text" : "libsvm text";
}

Result<void> refuse_packing_twice(const std::string& source, SetForm form) {
  if (form != SetForm::kPacked || !is_packed_file(source)) return {};
  return Error{ErrorCode::kInvalidArgument,
               source + " is packed already; name a text file as the source, or as the output"};
}

Result<std::unique_ptr<SetOutput>> SetOutput::create(const std::string& path,
                                                     const SetOutputOptions& options,
                                                     std::uint64_t points, Dimensions dimensions) {
  std::unique_ptr<SetOutput> output(new SetOutput(options, dimensions));
  if (options.form == SetForm::kPacked) {
    auto packed = PackedWriter::create(path, options.normalize);
    if (!packed) return packed.error();
    output->packed_ = std::move(*packed);
    return output;
  }
  auto text = TextOutput::create(path);
  if (!text) return text.error();
  output->text_ = std::move(*text);
  if (options.form == SetForm::kXc) {
    Result<void> headed = output->text_->write(xc_header(points, dimensions));
    if (!headed) return headed.error();
  }
  return output;
}

Result<void> SetOutput::add(const Point& point) {
  if (packed_) return packed_->add(point);
  line_.clear();
  append_libsvm(line_, point, options_.form == SetForm::kXc ? 0 : options_.first_feature);
  return text_->write(line_);
}

Result<void> SetOutput::commit(const Irregularities& irregularities,
                               AtomicFile::Existing existing) {
  if (packed_) return packed_->finish(dimensions_, irregularities, "", existing);
  return text_->commit(existing);
}

}  // namespace gleaner
