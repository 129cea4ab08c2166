#include "master/see/view_json.hpp"

#include <qrencode.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "master/see/event_text.hpp"
#include "master/see/json_values.hpp"
#include "master/see/status_words.hpp"

namespace gleaner {
namespace {

Json precision_of(const Precision& precision) {
  Json json;
  add_precision(json, precision);
  return json;
}

Json times_of(const PageView& view) {
  Json uses = Json::array();
  for (std::size_t i = 0; i < kTimeUses; ++i) {
    const auto use = static_cast<TimeUse>(i);
    uses.push_back({{"use", time_use_name(use)},
                    {"text", time_use_text(use)},
                    {"seconds", view.time_all[i]},
                    {"recent_seconds", view.time_recent[i]}});
  }
  return uses;
}

Json why_of(const RunStatus& status) {
  const auto sentences = why(status, "run");
  return sentences ? Json(*sentences) : Json::array();
}

}  // namespace

// The text as a QR code: one string per row, '1' for a dark module and '0' for a light one, without
// the quiet zone of four modules around the code. Empty when the text is too long for a code.

// The code's rows, each a '1' for every dark module and a '0' for every light one, without the
// quiet zone of four modules that belongs around it. Empty when the text is longer than a code can
// hold.
inline std::vector<std::string> qr_rows(std::string_view text) {
  const std::string copy(text);
  const std::unique_ptr<QRcode, decltype(&QRcode_free)> code(
      QRcode_encodeString8bit(copy.c_str(), 0, QR_ECLEVEL_M), &QRcode_free);
  std::vector<std::string> rows;
  if (!code) return rows;
  const auto width = static_cast<std::size_t>(code->width);
  for (std::size_t y = 0; y < width; ++y) {
    std::string& row = rows.emplace_back(width, '0');
    for (std::size_t x = 0; x < width; ++x) {
      if ((code->data[y * width + x] & 1) != 0) row[x] = '1';
    }
  }
  return rows;
}

std::string run_json(const PageView& view, const RunFacts& facts, const HistorySeries& history) {
  const RunStatus& s = view.status;
  const RunProgress& progress = s.progress;
  const std::int64_t age = view.wall_seconds - view.checkpoint_wall_seconds;
  const Json body = {
      {"headline", headline(s)},
      {"why", why_of(s)},
      {"run", s.run},
      {"life", s.life},
      {"build", s.build},
      {"store", printable(facts.store)},
      {"version", view.version},
      {"wall_seconds", view.wall_seconds},
      {"stage", stage_name(progress.stage)},
      {"progress", fields_of(progress)},
      {"precision", precision_of(progress.precision)},
      {"wait",
       {{"waits_for", text_or_null(s.waits_for)},
        {"owner", owner_name(s.wait_owner)},
        {"seconds", seconds(s.waits_us)},
        {"is_held_up", s.is_held_up}}},
      {"checkpoint",
       {{"number", progress.round},
        {"age_seconds",
         view.checkpoint_wall_seconds == 0 ? Json() : Json(std::max<std::int64_t>(0, age))}}},
      {"traffic",
       {{"unit_bytes_down", progress.unit_bytes_down},
        {"unit_bytes_up", progress.unit_bytes_up},
        {"bytes_per_second_down", known(view.bytes_per_second_down)},
        {"bytes_per_second_up", known(view.bytes_per_second_up)}}},
      {"disk", {{"store_bytes", s.store_bytes}, {"free_bytes", s.free_bytes}}},
      {"examples", progress.examples},
      {"volunteers_here", progress.volunteers},
      {"shards", s.shards.size()},
      {"time", times_of(view)},
      {"history_version", history.version()},
      {"history_records", history.records().size()},
      {"join", text_or_null(facts.join)},
      {"program", program_of(facts.program)}};
  return dump(body);
}

std::string configuration_json(const RunFacts& facts) {
  Json settings = Json::array();
  for (const SettingShown& s : facts.settings) {
    settings.push_back({{"key", s.key},
                        {"value", printable(s.value)},
                        {"unit", s.unit},
                        {"doc", s.doc},
                        {"is_default", s.is_default}});
  }
  Json data = Json::object();
  visit_data_fields(facts, [&](const char* name, auto value) { data[name] = value; });
  return dump({{"data", std::move(data)},
               {"settings", std::move(settings)},
               {"recipe", {{"name", facts.recipe.recipe}, {"values", values_of(facts.recipe)}}}});
}

std::string join_json(const Listening& listening) {
  const std::string& line = listening.join;
  // The QR code holds the address without flags, as a camera's reader expects.
  const std::string address = line.substr(0, line.find(' '));
  const std::string others = command_for_others(listening);
  return dump({{"line", address},
               {"command", "gleaner-volunteer " + line},
               {"command_for_others", text_or_null(others)},
               {"qr", qr_rows(address)}});
}

}  // namespace gleaner
