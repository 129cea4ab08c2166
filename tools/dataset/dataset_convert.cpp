#include <fmt/format.h>

#include "common/data/open_or_pack.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/dataset_command.hpp"
#include "tools/dataset/dataset_stream.hpp"

namespace gleaner {

namespace {

SetForm form_wanted(const ConvertFlags& flags) {
  if (flags.to.empty()) return form_of_name(flags.output);
  if (flags.to == "packed") return SetForm::kPacked;
  return flags.to == "libsvm" ? SetForm::kLibsvm : SetForm::kXc;
}

Result<void> copy_points(PointStream& stream, SetOutput& output, std::uint64_t points) {
  ProgressLine progress("Converting");
  Point point;
  for (std::uint64_t index = 0;; ++index) {
    Result<bool> has_point = stream.next(point);
    if (!has_point) return has_point.error();
    if (!*has_point) return {};
    if (auto added = output.add(point); !added) return added;
    if (index % 1024 == 0) progress.show(index, points, "examples");
  }
}

}  // namespace

Result<void> run_dataset_convert(const ConvertFlags& flags) {
  if (auto guarded = guard_outputs({flags.output}, flags.force); !guarded) return guarded;
  const SetOutputOptions options{form_wanted(flags), flags.read.first_feature, !flags.no_normalize};
  if (auto fits = refuse_packing_twice(flags.source, options.form); !fits) return fits;
  TextOptions text = flags.read.text_options();
  if (auto limited = take_limits(flags.like, text); !limited) return limited;
  Result<SetSize> size = size_of_set(flags.source, text);
  if (!size) return size.error();
  const Dimensions dimensions = text.limits.value_or(size->dimensions);
  auto stream = PointStream::open(flags.source, text);
  if (!stream) return stream.error();
  auto output = SetOutput::create(flags.output, options, size->points, dimensions);
  if (!output) return output.error();
  if (auto copied = copy_points(**stream, **output, size->points); !copied) return copied;
  Result<void> committed = (*output)->commit((*stream)->irregularities(), existing(flags.force));
  if (!committed) return committed;
  const Json body = {{"written", Json::array({written_json(flags.output, size->points)})},
                     {"form", form_name(options.form)},
                     {"features", dimensions.features},
                     {"labels", dimensions.labels}};
  return print_done(
      flags.json, "dataset convert", flags.source, body,
      fmt::format("{}: {}, {} examples, {} features, {} labels{}\n", flags.output,
                  form_name(options.form), with_commas(size->points),
                  with_commas(dimensions.features), with_commas(dimensions.labels),
                  options.form == SetForm::kLibsvm ? ", which it does not announce" : ""));
}

namespace {

Result<std::unique_ptr<PackedDataset>> pack_to_output(const PackFlags& flags,
                                                      const PackOptions& options) {
  if (is_packed_file(flags.source)) {
    return Error{ErrorCode::kInvalidArgument,
                 flags.source + " is packed already; copy it, or name the text file"};
  }
  Result<void> guarded = guard_outputs({flags.output}, flags.force);
  if (!guarded) return guarded.error();
  Result<void> packed = pack_text(flags.source, flags.output, "", options, existing(flags.force));
  if (!packed) return packed.error();
  return PackedDataset::open(flags.output);
}

}  // namespace

Result<void> run_dataset_pack(const PackFlags& flags) {
  PackOptions options;
  options.text = flags.read.text_options();
  options.normalize = !flags.no_normalize;
  options.cache_dir = flags.cache_dir;
  if (!flags.like.empty()) {
    PackOptions like_options = options;
    like_options.text.format = TextFormat::kAuto;
    Result<std::unique_ptr<PackedDataset>> like = open_or_pack(flags.like, like_options);
    if (!like) return like.error();
    options.text.limits = Dimensions{(*like)->features(), (*like)->labels()};
    options.text.limits_name = flags.like;
  }
  ProgressLine progress("Packing");
  options.on_progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.show(done, total, "bytes");
  };
  Result<std::unique_ptr<PackedDataset>> dataset =
      flags.output.empty() ? open_or_pack(flags.source, options) : pack_to_output(flags, options);
  if (!dataset) return dataset.error();
  const PackedDataset& packed = **dataset;
  const Json body = {{"written", Json::array({written_json(packed.path(), packed.points())})},
                     {"features", packed.features()},
                     {"labels", packed.labels()},
                     {"fingerprint", fmt::format("{:016x}", packed.fingerprint())}};
  return print_done(
      flags.json, "dataset pack", flags.source, body,
      fmt::format("{}: {} examples, {} features, {} labels, fingerprint {:016x}\n", packed.path(),
                  with_commas(packed.points()), with_commas(packed.features()),
                  with_commas(packed.labels()), packed.fingerprint()));
}

}  // namespace gleaner
