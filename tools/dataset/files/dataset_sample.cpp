#include "tools/dataset/files/dataset_sample.hpp"

#include <fmt/format.h>

#include <cmath>

#include "common/counter_random.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_output.hpp"
#include "tools/dataset/files/dataset_stream.hpp"

namespace gleaner {
namespace {

Result<std::uint64_t> wanted_points(const SampleFlags& flags, std::uint64_t total) {
  if ((flags.points == 0) == (flags.share == 0)) {
    return Error{ErrorCode::kInvalidArgument,
                 "give either --points (how many) or --share (which part, such as 0.1)"};
  }
  if (flags.points > total) {
    return Error{ErrorCode::kInvalidData, fmt::format("{} has {} examples, fewer than --points {}",
                                                      flags.source, total, flags.points)};
  }
  if (flags.points > 0) return flags.points;
  if (!(flags.share > 0 && flags.share <= 1)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--share {} is not above 0 and up to 1", flags.share)};
  }
  const auto points =
      static_cast<std::uint64_t>(std::llround(flags.share * static_cast<double>(total)));
  if (points > 0) return points;
  return Error{ErrorCode::kInvalidData, fmt::format("--share {} of the {} points of {} is none",
                                                    flags.share, total, flags.source)};
}

}  // namespace

// With w wanted of the l that are left, the next is one of them with probability w / l (Fan,
// Muller, Rezucha 1962; Knuth's algorithm S).
bool SampleChoice::next() {
  const bool is_chosen = below(counter_random(seed_, Purpose::kSplit, index_++), left_--) < wanted_;
  wanted_ -= is_chosen;
  return is_chosen;
}

Result<void> run_dataset_sample(const SampleFlags& flags) {
  if (auto guarded = guard_outputs({flags.output}, flags.force); !guarded) return guarded;
  SetOutputOptions options{form_of_name(flags.output), flags.read.first_feature, true};
  if (auto fits = refuse_packing_twice(flags.source, options.form); !fits) return fits;
  Result<SetSize> size = size_of_set(flags.source, flags.read.text_options());
  if (!size) return size.error();
  Result<std::uint64_t> wanted = wanted_points(flags, size->points);
  if (!wanted) return wanted.error();
  auto stream = PointStream::open(flags.source, flags.read.text_options());
  if (!stream) return stream.error();
  auto output = SetOutput::create(flags.output, options, *wanted, size->dimensions);
  if (!output) return output.error();
  SampleChoice choice(flags.seed, size->points, *wanted);
  {
    ProgressLine progress("Sampling");
    Point point;
    for (std::uint64_t index = 0; index < size->points; ++index) {
      Result<bool> has_point = (*stream)->next(point);
      if (!has_point) return has_point.error();
      if (!*has_point) break;
      if (!choice.next()) continue;
      if (auto added = (*output)->add(point); !added) return added;
      progress.show(index, size->points, "examples");
    }
  }
  Result<void> committed = (*output)->commit((*stream)->irregularities(), existing(flags.force));
  if (!committed) return committed;
  const Json body = {{"written", Json::array({written_json(flags.output, *wanted)})},
                     {"form", form_name(options.form)},
                     {"of_points", size->points},
                     {"features", size->dimensions.features},
                     {"labels", size->dimensions.labels}};
  return print_done(flags.json, "dataset sample", flags.source, body,
                    fmt::format("{}: {} of {} examples, {}\n", flags.output, with_commas(*wanted),
                                with_commas(size->points), form_name(options.form)));
}

}  // namespace gleaner
