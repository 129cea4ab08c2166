#include "tools/dataset/files/dataset_pack.hpp"

#include <fmt/format.h>

#include "common/data/open_or_pack.hpp"
#include "tools/cli/report.hpp"

namespace gleaner {
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
