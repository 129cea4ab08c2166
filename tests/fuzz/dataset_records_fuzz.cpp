// Input: a table of texts, as CSV, TSV and JSON, with tags of every form. Each name and tag that is
// read must fit on one line, so that it can be written.
#include <string_view>

#include "common/result.hpp"
#include "tests/support/memory_source.hpp"
#include "tools/dataset/tag_forms.hpp"
#include "tools/dataset/text_records.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace gleaner;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const RecordForm form : {RecordForm::kCsv, RecordForm::kTsv, RecordForm::kJson}) {
    auto source = open_memory_source("input", text);
    if (!source) continue;
    auto records = TextRecords::open(std::move(*source), RecordOptions{form, {}, {}, {}},
                                     {{"text"}, "tags", "name", ","});
    if (!records) continue;
    TextRecord record;
    for (;;) {
      const Result<bool> has_record = (*records)->next(record);
      if (!has_record || !*has_record) break;
      GLEANER_CHECK(record.name.find('\n') == std::string::npos);
      for (const char* tag_form : {kTagList, kTagBrackets, kTagComma}) {
        for (const std::string& tag : cut_tags(record.uncut_tags, tag_form)) record.add_tag(tag);
      }
      for (const std::string& tag : record.tags) {
        GLEANER_CHECK(!tag.empty() && tag.find('\n') == std::string::npos);
      }
    }
  }
  return 0;
}
