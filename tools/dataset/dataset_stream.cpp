#include "tools/dataset/dataset_stream.hpp"

#include "tools/cli/console.hpp"

namespace gleaner {

Result<std::unique_ptr<PointStream>> PointStream::open(const std::string& path,
                                                       const TextOptions& options) {
  if (!is_packed_file(path)) {
    Result<std::unique_ptr<ByteSource>> source = open_file_source(path);
    return source ? open(std::move(*source), options) : source.error();
  }
  Result<std::unique_ptr<PackedDataset>> packed = PackedDataset::open(path);
  if (!packed) return packed.error();
  std::unique_ptr<PointStream> stream(new PointStream);
  stream->packed_ = std::move(*packed);
  return stream;
}

Result<std::unique_ptr<PointStream>> PointStream::open(std::unique_ptr<ByteSource> source,
                                                       const TextOptions& options) {
  Result<std::unique_ptr<TextReader>> text = TextReader::open(std::move(source), options);
  if (!text) return text.error();
  std::unique_ptr<PointStream> stream(new PointStream);
  stream->text_ = std::move(*text);
  return stream;
}

Result<bool> PointStream::next(Point& point) {
  if (text_) return text_->next(point);
  if (next_ == packed_->points()) return false;
  const std::uint64_t index[] = {next_};
  Result<void> sound = packed_->verify(index);
  if (!sound) return sound.error();
  const ExampleView view = packed_->example(next_++);
  point.labels.assign(view.labels.begin(), view.labels.end());
  point.features.assign(view.features.begin(), view.features.end());
  point.values.assign(view.values.begin(), view.values.end());
  return true;
}

std::optional<std::uint64_t> PointStream::announced_points() const {
  return text_ ? text_->announced_points() : packed_->points();
}

Dimensions PointStream::dimensions() const {
  return text_ ? text_->dimensions() : Dimensions{packed_->features(), packed_->labels()};
}

Irregularities PointStream::irregularities() const {
  return text_ ? text_->irregularities() : packed_->summary().irregularities;
}

const char* PointStream::form() const {
  if (packed_) return "packed";
  return text_->format() == TextFormat::kXc ? "XC text" : "libsvm text";
}

Result<void> for_each_point(PointStream& stream, const char* doing, std::uint64_t total,
                            const std::function<Result<void>(const Point&, std::uint64_t)>& use) {
  ProgressLine progress(doing);
  Point point;
  for (std::uint64_t index = 0;; ++index) {
    Result<bool> has_point = stream.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) return {};
    if (auto used = use(point, index); !used) return used;
    if (index % 1024 == 0) progress.show(index, total, "examples");
  }
}

Result<SetSize> size_of_set(const std::string& path, const TextOptions& options) {
  Result<std::unique_ptr<PointStream>> stream = PointStream::open(path, options);
  if (!stream) return stream.error();
  std::uint64_t points = (*stream)->announced_points().value_or(0);
  if (points == 0) {
    const auto count = [&](const Point&, std::uint64_t) {
      ++points;
      return Result<void>();
    };
    auto counted = for_each_point(**stream, "Counting", 0, count);
    if (!counted) return counted.error();
  }
  return SetSize{points, (*stream)->dimensions()};
}

Result<void> take_limits(const std::string& like, TextOptions& text) {
  if (like.empty()) return {};
  TextOptions own = text;
  own.format = TextFormat::kAuto;
  const Result<SetSize> size = size_of_set(like, own);
  if (!size) return size.error();
  text.limits = size->dimensions;
  text.limits_name = like;
  return {};
}

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

Result<void> copy_set(const std::string& source, const TextOptions& text, std::uint64_t total,
                      const std::string& target, const SetOutputOptions& options,
                      std::uint64_t points, Dimensions dimensions, const char* doing,
                      AtomicFile::Existing existing, const std::function<bool()>& takes) {
  auto stream = PointStream::open(source, text);
  if (!stream) return stream.error();
  auto output = SetOutput::create(target, options, points, dimensions);
  if (!output) return output.error();
  auto copied = for_each_point(**stream, doing, total, [&](const Point& point, std::uint64_t) {
    return takes() ? (*output)->add(point) : Result<void>();
  });
  if (!copied) return copied;
  return (*output)->commit((*stream)->irregularities(), existing);
}

}  // namespace gleaner
