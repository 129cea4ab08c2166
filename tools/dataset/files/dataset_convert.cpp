#include "tools/dataset/files/dataset_convert.hpp"

#include <fmt/format.h>

#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_output.hpp"
#include "tools/dataset/files/dataset_stream.hpp"

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

}  // namespace gleaner
