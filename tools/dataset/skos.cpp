#include "tools/dataset/skos.hpp"

#include <fmt/format.h>
#include <serd/serd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common/data/byte_source.hpp"
#include "tools/dataset/tag_forms.hpp"

namespace gleaner {
namespace {

constexpr std::string_view kSkos = "http://www.w3.org/2004/02/skos/core#";
constexpr std::string_view kType = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
constexpr std::string_view kDeprecated = "http://www.w3.org/2002/07/owl#deprecated";
constexpr std::size_t kReadBytes = 4096;

struct Worded {
  std::string language;
  std::string words;
};

struct Concept {
  std::string uri;
  std::vector<Worded> preferred, alternative;
  std::string notation;
  bool is_concept = false;
  bool is_deprecated = false;
};

std::string_view text_of(const SerdNode* node) {
  return {reinterpret_cast<const char*>(node->buf), node->n_bytes};
}

// The concepts of one file. Serd calls the static members.
class SkosFile {
 public:
  explicit SkosFile(std::unique_ptr<ByteSource> source)
      : source_(std::move(source)), env_(serd_env_new(nullptr)) {}

  ~SkosFile() { serd_env_free(env_); }

  SkosFile(const SkosFile&) = delete;
  SkosFile& operator=(const SkosFile&) = delete;

  Result<void> read();
  [[nodiscard]] std::vector<LabelText> labels(std::string language) const;

 private:
  static SerdStatus on_statement(void* self, SerdStatementFlags, const SerdNode*,
                                 const SerdNode* subject, const SerdNode* predicate,
                                 const SerdNode* object, const SerdNode*, const SerdNode* language);
  static SerdStatus on_error(void* self, const SerdError* error);
  static std::size_t on_read(void* bytes, std::size_t, std::size_t count, void* self);

  [[nodiscard]] std::string expanded(const SerdNode* node) const;
  Concept& concept_of(const SerdNode* subject);
  [[nodiscard]] std::string most_frequent_language() const;

  std::unique_ptr<ByteSource> source_;
  SerdEnv* env_;
  std::vector<Concept> concepts_;
  std::map<std::string, std::size_t, std::less<>> places_;
  std::optional<Error> error_;
};

}  // namespace

std::string SkosFile::expanded(const SerdNode* node) const {
  SerdNode whole = serd_env_expand_node(env_, node);
  std::string text(whole.buf == nullptr ? text_of(node) : text_of(&whole));
  serd_node_free(&whole);
  return text;
}

Concept& SkosFile::concept_of(const SerdNode* subject) {
  std::string uri = expanded(subject);
  const auto [place, is_new] = places_.try_emplace(uri, concepts_.size());
  if (is_new) concepts_.push_back({std::move(uri), {}, {}, "", false, false});
  return concepts_[place->second];
}

SerdStatus SkosFile::on_statement(void* self, SerdStatementFlags, const SerdNode*,
                                  const SerdNode* subject, const SerdNode* predicate,
                                  const SerdNode* object, const SerdNode*,
                                  const SerdNode* language) {
  SkosFile& file = *static_cast<SkosFile*>(self);
  const std::string verb = file.expanded(predicate);
  const std::string_view of_skos =
      verb.starts_with(kSkos) ? std::string_view(verb).substr(kSkos.size()) : std::string_view();
  const bool is_literal = object->type == SERD_LITERAL;
  if (is_literal && (of_skos == "prefLabel" || of_skos == "altLabel")) {
    Concept& named = file.concept_of(subject);
    (of_skos == "prefLabel" ? named.preferred : named.alternative)
        .push_back({std::string(language == nullptr ? "" : text_of(language)),
                    std::string(trimmed(text_of(object)))});
  } else if (is_literal && of_skos == "notation") {
    file.concept_of(subject).notation = text_of(object);
  } else if (is_literal && verb == kDeprecated) {
    file.concept_of(subject).is_deprecated = text_of(object) == "true" || text_of(object) == "1";
  } else if (verb == kType && file.expanded(object) == std::string(kSkos) + "Concept") {
    file.concept_of(subject).is_concept = true;
  }
  return SERD_SUCCESS;
}

SerdStatus SkosFile::on_error(void* self, const SerdError* error) {
  SkosFile& file = *static_cast<SkosFile*>(self);
  if (file.error_) return SERD_SUCCESS;
  std::array<char, 256> said{};
  std::vsnprintf(said.data(), said.size(), error->fmt, *error->args);
  file.error_ =
      Error{ErrorCode::kInvalidData, fmt::format("{}:{}:{}: {}", file.source_->name(), error->line,
                                                 error->col, trimmed(said.data()))};
  return SERD_SUCCESS;
}

std::size_t SkosFile::on_read(void* bytes, std::size_t, std::size_t count, void* self) {
  SkosFile& file = *static_cast<SkosFile*>(self);
  const auto read = file.source_->read({static_cast<char*>(bytes), count});
  if (read) return *read;
  file.error_ = read.error();
  return 0;
}

Result<void> SkosFile::read() {
  const std::unique_ptr<SerdReader, void (*)(SerdReader*)> reader(
      serd_reader_new(
          SERD_TURTLE, this, nullptr,
          [](void* self, const SerdNode* uri) {
            return serd_env_set_base_uri(static_cast<SkosFile*>(self)->env_, uri);
          },
          [](void* self, const SerdNode* name, const SerdNode* uri) {
            return serd_env_set_prefix(static_cast<SkosFile*>(self)->env_, name, uri);
          },
          &on_statement, nullptr),
      &serd_reader_free);
  serd_reader_set_strict(reader.get(), true);
  serd_reader_set_error_sink(reader.get(), &on_error, this);
  const SerdStatus status = serd_reader_read_source(
      reader.get(), &on_read,
      [](void* self) { return static_cast<SkosFile*>(self)->error_ ? 1 : 0; }, this,
      reinterpret_cast<const std::uint8_t*>(source_->name().c_str()), kReadBytes);
  if (error_) return *error_;
  if (status == SERD_SUCCESS) return {};
  return Error{
      ErrorCode::kInvalidData,
      fmt::format("{}: {}", source_->name(), reinterpret_cast<const char*>(serd_strerror(status)))};
}

std::string SkosFile::most_frequent_language() const {
  std::map<std::string, std::size_t> counts;
  for (const Concept& named : concepts_) {
    for (const Worded& label : named.preferred) ++counts[label.language];
  }
  const auto most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; });
  return most == counts.end() ? "" : most->first;
}

std::vector<LabelText> SkosFile::labels(std::string language) const {
  if (language.empty()) language = most_frequent_language();
  std::vector<LabelText> labels;
  for (const Concept& named : concepts_) {
    if (!named.is_concept) continue;
    LabelText label{named.uri, "", named.notation, {}, named.is_deprecated};
    for (const auto* list : {&named.preferred, &named.alternative}) {
      for (const Worded& worded : *list) {
        if (worded.language == language) label.texts.push_back(worded.words);
      }
      if (list == &named.preferred && label.texts.empty() && !list->empty()) {
        label.texts.push_back(list->front().words);
      }
      if (list == &named.preferred && !label.texts.empty()) label.name = label.texts.front();
    }
    labels.push_back(std::move(label));
  }
  return labels;
}

bool is_rdf(const std::string& path, std::string_view begin) {
  std::string name = path;
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  }
  begin = trimmed(begin);
  return name.ends_with(".ttl") || name.ends_with(".nt") || name.ends_with(".rdf") ||
         begin.starts_with("@prefix") || begin.starts_with("@base") || begin.starts_with("<?xml") ||
         begin.starts_with("<rdf:RDF");
}

Result<std::vector<LabelText>> read_skos(const std::string& path, std::string language) {
  if (path.ends_with(".rdf") || path.ends_with(".xml")) {
    return Error{ErrorCode::kInvalidData,
                 fmt::format("{}: RDF/XML is not read here: rapper -o turtle {} makes Turtle of it "
                             "(Debian's package raptor2-utils)",
                             path, path)};
  }
  auto source = open_file_source(path);
  if (!source) return source.error();
  SkosFile file(std::move(*source));
  if (auto read = file.read(); !read) return read.error();
  std::vector<LabelText> labels = file.labels(std::move(language));
  if (!labels.empty()) return labels;
  return Error{ErrorCode::kInvalidData,
               path + ": expected concepts of SKOS (skos:Concept), found none"};
}

}  // namespace gleaner
