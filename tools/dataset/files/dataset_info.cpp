#include "tools/dataset/files/dataset_info.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/data/name_table.hpp"
#include "tools/cli/print_out.hpp"
#include "tools/cli/report.hpp"
#include "tools/dataset/files/dataset_statistics.hpp"
#include "tools/dataset/files/dataset_stream.hpp"

namespace gleaner {
namespace {

using Summary = DatasetStatistics::Summary;

constexpr std::uint64_t kBarWidth = 40;

double mean(std::uint64_t sum, std::uint64_t count) {
  return count == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(count);
}

std::string bin_name(const PowerHistogram::Bin& bin) {
  if (bin.first == bin.last) return with_commas(bin.first);
  return with_commas(bin.first) + "-" + with_commas(bin.last);
}

std::string histogram_text(const char* title, const PowerHistogram& histogram) {
  std::string text = fmt::format("\n{}\n", title);
  std::uint64_t most = 1;
  for (const auto& bin : histogram.bins()) most = std::max(most, bin.count);
  for (const auto& bin : histogram.bins()) {
    // Rounded up, so that whatever is there shows.
    const std::uint64_t width = (bin.count * kBarWidth + most - 1) / most;
    text += fmt::format("  {:>21} {:>13} {}\n", bin_name(bin), with_commas(bin.count),
                        std::string(width, '#'));
  }
  return text;
}

Json histogram_json(const PowerHistogram& histogram) {
  Json bins = Json::array();
  for (const auto& bin : histogram.bins()) {
    bins.push_back({{"first", bin.first}, {"last", bin.last}, {"count", bin.count}});
  }
  return bins;
}

std::string as_text(const InfoFlags& flags, const PointStream& stream, const Summary& s,
                    const NameTable& names) {
  std::string text = fmt::format(
      "{} ({})\n"
      "  examples  {:>15}\n"
      "  features  {:>15}   {} occur, {:.1f} per example, values {:g} to {:g}\n"
      "  labels    {:>15}   {} occur, {:.2f} per example\n",
      flags.source, stream.form(), with_commas(s.points), with_commas(s.dimensions.features),
      with_commas(s.seen.features), mean(s.feature_entries, s.points), s.value_min, s.value_max,
      with_commas(s.dimensions.labels), with_commas(s.seen.labels),
      mean(s.label_entries, s.points));
  if (const PackedDataset* packed = stream.packed()) {
    text += fmt::format("  fingerprint {:016x}, rows {}normalised, {} bytes, all checksums fit\n",
                        packed->fingerprint(), packed->summary().is_normalized ? "" : "not ",
                        with_commas(packed->summary().file_bytes));
  }
  text += histogram_text("labels by the number of their examples", s.points_per_label);
  text += histogram_text("features by the number of their examples", s.points_per_feature);
  text += histogram_text("examples by the number of their labels", s.labels_per_point);
  text += histogram_text("examples by the number of their features", s.features_per_point);
  text += "\nmost frequent labels\n";
  for (const LabelCount& top : s.frequent_labels) {
    text += fmt::format("  {:>13} examples   {}\n", with_commas(top.points),
                        names.name_or("label", top.label));
  }
  if (!s.warnings.empty()) text += "\nwarnings\n";
  for (const std::string& warning : s.warnings) text += fmt::format("  {}\n", warning);
  return text;
}

std::string as_json(const InfoFlags& flags, const PointStream& stream, const Summary& s,
                    const NameTable& names) {
  Json json = {{"source", flags.source},
               {"form", stream.form()},
               {"points", s.points},
               {"features", s.dimensions.features},
               {"labels", s.dimensions.labels},
               {"features_seen", s.seen.features},
               {"labels_seen", s.seen.labels},
               {"feature_entries", s.feature_entries},
               {"label_entries", s.label_entries},
               {"features_per_point", mean(s.feature_entries, s.points)},
               {"labels_per_point", mean(s.label_entries, s.points)},
               {"points_without_labels", s.points_without_labels},
               {"points_without_features", s.points_without_features},
               {"value_min", s.value_min},
               {"value_max", s.value_max},
               {"is_sorted_by_label", s.is_sorted_by_label},
               {"labels_by_points", histogram_json(s.points_per_label)},
               {"features_by_points", histogram_json(s.points_per_feature)},
               {"points_by_labels", histogram_json(s.labels_per_point)},
               {"points_by_features", histogram_json(s.features_per_point)},
               {"warnings", s.warnings}};
  json["frequent_labels"] = Json::array();
  for (const LabelCount& top : s.frequent_labels) {
    json["frequent_labels"].push_back({{"label", top.label},
                                       {"points", top.points},
                                       {"name", names.name_or("label", top.label)}});
  }
  if (const PackedDataset* packed = stream.packed()) {
    json["fingerprint"] = fmt::format("{:016x}", packed->fingerprint());
    json["is_normalized"] = packed->summary().is_normalized;
    json["file_bytes"] = packed->summary().file_bytes;
  }
  return json_document("dataset info", flags.source, json);
}

}  // namespace

Result<void> run_dataset_info(const InfoFlags& flags) {
  Result<std::unique_ptr<PointStream>> opened =
      PointStream::open(flags.source, flags.read.text_options());
  if (!opened) return opened.error();
  PointStream& stream = **opened;
  DatasetStatistics statistics;
  {
    ProgressLine progress("Reading");
    Point point;
    std::uint64_t points = 0;
    for (;;) {
      Result<bool> has_point = stream.next(point);
      if (!has_point) return has_point.error();
      if (!*has_point) break;
      statistics.add(point);
      if (++points % 1024 == 0)
        progress.show(points, stream.announced_points().value_or(0), "examples");
    }
  }
  NameTable names;
  const std::string companion = companion_path(flags.source, "labels.txt");
  if (!companion.empty()) {
    Result<NameTable> loaded = NameTable::load(companion);
    if (!loaded) return loaded.error();
    names = std::move(*loaded);
  }
  const Summary summary = statistics.summary(stream.dimensions(), stream.irregularities());
  return print_out(flags.json ? as_json(flags, stream, summary, names)
                              : as_text(flags, stream, summary, names));
}

}  // namespace gleaner
