// Gives the Python package a model that answers and a training file that is written. Arrays come in
// the types of CsrRows; the package sees to that.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/data/packed_writer.hpp"
#include "common/data/point_parser.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "common/train/kernels.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"
#include "storage/keep/open_to_read.hpp"

namespace py = pybind11;

namespace gleaner {

// Rows of a sparse matrix that somebody else owns, in CSR form, as the Python package hands them
// over: canonical (ascending columns, each once) and of these types. Plain values.

struct CsrRows {
  std::span<const std::int64_t> offsets;  // rows + 1, from 0 on
  std::span<const std::uint32_t> columns;
  std::span<const float> values;  // parallel to columns; empty where only columns count

  [[nodiscard]] std::size_t rows() const { return offsets.size() - 1; }

  // kInvalidArgument unless the offsets ascend from 0 to the number of columns, and each row's
  // columns ascend and are below `width`, with finite values. `first` is the number of the first
  // row, and `what` the matrix, as messages name them.
  [[nodiscard]] Result<void> check(std::uint64_t width, std::uint64_t first,
                                   const char* what) const;

  [[nodiscard]] std::span<const std::uint32_t> columns_of(std::size_t row) const {
    return columns.subspan(static_cast<std::size_t>(offsets[row]), size_of(row));
  }

  [[nodiscard]] std::span<const float> values_of(std::size_t row) const {
    return values.subspan(static_cast<std::size_t>(offsets[row]), size_of(row));
  }

 private:
  [[nodiscard]] std::size_t size_of(std::size_t row) const {
    return static_cast<std::size_t>(offsets[row + 1] - offsets[row]);
  }
};

inline Result<void> CsrRows::check(std::uint64_t width, std::uint64_t first,
                                   const char* what) const {
  const auto refuse = [what](const std::string& why) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("{}: {}", what, why)};
  };
  const bool is_whole = !offsets.empty() && offsets.front() == 0 &&
                        std::ranges::is_sorted(offsets) &&
                        offsets.back() == static_cast<std::int64_t>(columns.size()) &&
                        (values.empty() || values.size() == columns.size());
  if (!is_whole) return refuse("its indptr, indices and data do not fit each other");
  for (std::size_t row = 0; row < rows(); ++row) {
    const auto ids = columns_of(row);
    const auto falls = std::ranges::adjacent_find(ids, std::greater_equal());
    if (falls != ids.end()) {
      return refuse(fmt::format("row {}: column {} is not below the next one, {}", first + row,
                                falls[0], falls[1]));
    }
    if (!ids.empty() && ids.back() >= width) {
      return refuse(fmt::format("row {}: column {} of {}", first + row, ids.back(), width));
    }
    if (values.empty()) continue;
    const auto numbers = values_of(row);
    const auto odd = std::ranges::find_if(numbers, [](float v) { return !std::isfinite(v); });
    if (odd != numbers.end()) {
      return refuse(fmt::format("row {}, column {}: {} is not a number of 32 bits", first + row,
                                ids[static_cast<std::size_t>(odd - numbers.begin())], *odd));
    }
  }
  return {};
}

// A trained model within a Python process: the inference of `gleaner predict`, on rows and on
// texts, and the same bits. One thread at a time; the work itself runs on a pool.

// The best labels of some examples, best first.
struct BestLabels {
  std::uint32_t width = 0;            // labels for each example
  std::vector<std::uint32_t> labels;  // examples x width, as are the next two
  std::vector<float> logits;
  std::vector<float> probabilities;
};

class LoadedModel {
 public:
  // Opens a run's store or a model file, and reads it whole. `data` is a folder of
  // `gleaner dataset` or a model file that has the names and words; empty: none, unless `path` is a
  // model file, which has its own. Fails as RunStore::open(), open_exported_run(),
  // AnsweringModel::open() and PredictData::open_names() do.
  static Result<std::unique_ptr<LoadedModel>> open(const std::string& path, const std::string& data,
                                                   unsigned threads);

  [[nodiscard]] const AnsweringModel& model() const { return *model_; }

  [[nodiscard]] const PredictData& data() const { return data_; }

  // Values as they stand in the data: they are scaled here if training scaled them. `first`: as
  // CsrRows::check().
  Result<BestLabels> best_of_rows(const CsrRows& rows, std::uint64_t first, std::uint32_t top_k);
  // kInvalidArgument without words.
  Result<BestLabels> best_of_texts(const std::vector<std::string>& texts, std::uint32_t top_k);

  // As StoredModel::why, of the only row and of a text. kInvalidArgument for a label that the model
  // does not have, and with a hidden layer.
  Result<std::vector<Contribution>> why_row(const CsrRows& row, std::uint32_t label,
                                            std::size_t count);
  Result<std::vector<Contribution>> why_text(const std::string& text, std::uint32_t label,
                                             std::size_t count);

 private:
  LoadedModel(std::unique_ptr<AnsweringModel> model, PredictData data)
      : model_(std::move(model)), data_(std::move(data)) {}

  Result<Point> point_of(const std::string& text) const;
  Result<BestLabels> best(std::vector<Point> points, std::uint32_t top_k);
  Result<std::vector<Contribution>> why(Point point, std::uint32_t label, std::size_t count);

  std::unique_ptr<AnsweringModel> model_;
  PredictData data_;
};

namespace {

Point point_of_row(const CsrRows& rows, std::size_t row) {
  const auto columns = rows.columns_of(row);
  const auto values = rows.values_of(row);
  return {{}, {columns.begin(), columns.end()}, {values.begin(), values.end()}};
}

}  // namespace

Result<std::unique_ptr<LoadedModel>> LoadedModel::open(const std::string& path,
                                                       const std::string& data, unsigned threads) {
  if (auto level = simd_level_from_environment(); !level) return level.error();
  auto run = open_run_to_read(path);
  if (!run) return run.error();
  const std::string& names = data.empty() && is_model_file(path) ? path : data;
  auto known = names.empty() ? Result<PredictData>(PredictData())
                             : PredictData::open_names(names, (*run)->identity());
  if (!known) return known.error();
  AnsweringOptions options;
  options.threads = threads > 0 ? threads : std::max(1U, std::thread::hardware_concurrency());
  auto model = AnsweringModel::open(std::move(*run), options);
  if (!model) return name_folder(model.error(), path);
  return std::unique_ptr<LoadedModel>(new LoadedModel(std::move(*model), std::move(*known)));
}

Result<Point> LoadedModel::point_of(const std::string& text) const {
  if (data_.words() != nullptr) return data_.words()->point_of(text);
  return Error{ErrorCode::kInvalidArgument,
               "the model knows no words, so it cannot read texts: give data=FOLDER, the folder of "
               "its data set, or load a file of 'gleaner export --data FOLDER'"};
}

Result<BestLabels> LoadedModel::best(std::vector<Point> points, std::uint32_t top_k) {
  std::vector<ExampleView> examples;
  for (Point& point : points) {
    if (model_->is_normalised()) normalize_row(point.values);
    examples.push_back({{}, point.features, point.values});
  }
  const Result<std::vector<ScoredLabel>> scored = model_->top(examples, top_k, false);
  if (!scored) return scored.error();
  BestLabels best;
  best.width = model_->entries(top_k);
  for (const ScoredLabel& label : *scored) {
    best.labels.push_back(label.label);
    best.logits.push_back(label.logit);
  }
  best.probabilities = probabilities_of(*scored);
  return best;
}

Result<BestLabels> LoadedModel::best_of_rows(const CsrRows& rows, std::uint64_t first,
                                             std::uint32_t top_k) {
  if (auto sound = rows.check(model_->config().features, first, "X"); !sound) return sound.error();
  std::vector<Point> points;
  for (std::size_t row = 0; row < rows.rows(); ++row) points.push_back(point_of_row(rows, row));
  return best(std::move(points), top_k);
}

Result<BestLabels> LoadedModel::best_of_texts(const std::vector<std::string>& texts,
                                              std::uint32_t top_k) {
  std::vector<Point> points;
  for (const std::string& text : texts) {
    Result<Point> point = point_of(text);
    if (!point) return point.error();
    points.push_back(std::move(*point));
  }
  return best(std::move(points), top_k);
}

Result<std::vector<Contribution>> LoadedModel::why(Point point, std::uint32_t label,
                                                   std::size_t count) {
  const ModelConfig& config = model_->config();
  if (label >= config.labels) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("label {}: the model has the labels 0 to {}", label, config.labels - 1)};
  }
  if (!is_wide(config)) {
    return Error{ErrorCode::kInvalidArgument,
                 "a feature has no part of its own in a score that comes through a hidden layer: "
                 "train with hidden=0"};
  }
  if (model_->is_normalised()) normalize_row(point.values);
  return model_->why({{}, point.features, point.values}, label, count);
}

Result<std::vector<Contribution>> LoadedModel::why_row(const CsrRows& row, std::uint32_t label,
                                                       std::size_t count) {
  if (auto sound = row.check(model_->config().features, 0, "X"); !sound) return sound.error();
  if (row.rows() != 1) return Error{ErrorCode::kInvalidArgument, "X: expected one row"};
  return why(point_of_row(row, 0), label, count);
}

Result<std::vector<Contribution>> LoadedModel::why_text(const std::string& text,
                                                        std::uint32_t label, std::size_t count) {
  Result<Point> point = point_of(text);
  if (!point) return point.error();
  return why(std::move(*point), label, count);
}

// Examples of a Python program on their way into a packed file, which the master maps as it is: no
// text form comes between. Memory is that of the rows in hand. One thread.

// The words of texts: counted first, then the rule by which each text becomes an example.
class TextWords {
 public:
  // `rule` as parse_word_rule() reads it.
  static Result<TextWords> of_rule(const std::string& rule);
  // The words of an earlier data set (load_word_model), which stay as they are.
  static Result<TextWords> of_folder(const std::string& folder);

  void count(const std::string& text);

  // Ends the counting: words that this number of texts have become features.
  void number(std::uint32_t least) { model_.words.number(least); }

  [[nodiscard]] const WordModel& model() const { return model_; }

 private:
  explicit TextWords(WordModel model) : model_(std::move(model)) {}

  WordModel model_;
};

class TrainingFile {
 public:
  // `normalise` as the run's setting data.l2_normalise. `dimensions` belong to the data set.
  static Result<std::unique_ptr<TrainingFile>> create(const std::string& path,
                                                      Dimensions dimensions, bool normalise);

  // `labels`: as many rows as `rows`, columns alone. kInvalidArgument names the row of X or Y that
  // is wrong.
  Result<void> add_rows(const CsrRows& rows, const CsrRows& labels);
  Result<void> add_texts(const std::vector<std::string>& texts, const TextWords& words,
                         const CsrRows& labels);
  Result<void> finish();

 private:
  TrainingFile(std::unique_ptr<PackedWriter> writer, Dimensions dimensions)
      : writer_(std::move(writer)), dimensions_(dimensions) {}

  Result<void> check_labels(const CsrRows& labels, std::size_t rows) const;

  std::unique_ptr<PackedWriter> writer_;
  Dimensions dimensions_;
};

Result<TextWords> TextWords::of_rule(const std::string& rule) {
  const Result<WordRule> parsed = parse_word_rule(rule);
  if (!parsed) return parsed.error();
  WordModel model;
  model.rule = *parsed;
  model.fields = {{"text"}, "tags", "", "list"};
  return TextWords(std::move(model));
}

Result<TextWords> TextWords::of_folder(const std::string& folder) {
  Result<WordModel> model = load_word_model(folder);
  if (!model) return model.error();
  return TextWords(std::move(*model));
}

void TextWords::count(const std::string& text) {
  ++model_.points;
  for (const auto& [word, times] : counted_words(model_.rule, text)) model_.words.count(word);
}

Result<std::unique_ptr<TrainingFile>> TrainingFile::create(const std::string& path,
                                                           Dimensions dimensions, bool normalise) {
  auto writer = PackedWriter::create(path, normalise);
  if (!writer) return writer.error();
  return std::unique_ptr<TrainingFile>(new TrainingFile(std::move(*writer), dimensions));
}

Result<void> TrainingFile::check_labels(const CsrRows& labels, std::size_t rows) const {
  if (auto sound = labels.check(dimensions_.labels, writer_->points(), "Y"); !sound) return sound;
  if (labels.rows() == rows) return {};
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("X has {} rows and Y {}", rows, labels.rows())};
}

Result<void> TrainingFile::add_rows(const CsrRows& rows, const CsrRows& labels) {
  if (auto sound = rows.check(dimensions_.features, writer_->points(), "X"); !sound) return sound;
  if (auto sound = check_labels(labels, rows.rows()); !sound) return sound;
  for (std::size_t row = 0; row < rows.rows(); ++row) {
    Point point = point_of_row(rows, row);
    const auto own = labels.columns_of(row);
    point.labels.assign(own.begin(), own.end());
    if (auto added = writer_->add(point); !added) return added;
  }
  return {};
}

Result<void> TrainingFile::add_texts(const std::vector<std::string>& texts, const TextWords& words,
                                     const CsrRows& labels) {
  if (auto sound = check_labels(labels, texts.size()); !sound) return sound;
  for (std::size_t row = 0; row < texts.size(); ++row) {
    Point point = words.model().point_of(texts[row]);
    const auto own = labels.columns_of(row);
    point.labels.assign(own.begin(), own.end());
    if (auto added = writer_->add(point); !added) return added;
  }
  return {};
}

Result<void> TrainingFile::finish() {
  return writer_->finish(dimensions_, {}, "", AtomicFile::Existing::kReplace);
}

namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style>;

[[noreturn]] void raise(const Error& error) {
  switch (error.code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kInvalidData:
      throw py::value_error(error.message);
    case ErrorCode::kNotFound:
      PyErr_SetString(PyExc_FileNotFoundError, error.message.c_str());
      throw py::error_already_set();
    case ErrorCode::kIo:
    case ErrorCode::kDiskFull:
      PyErr_SetString(PyExc_OSError, error.message.c_str());
      throw py::error_already_set();
    default:
      throw std::runtime_error(error.message);
  }
}

template <typename T>
T or_raise(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

void or_raise(const Result<void>& result) {
  if (!result) raise(result.error());
}

template <typename T>
std::span<const T> span_of(const Array<T>& array) {
  return {array.data(), static_cast<std::size_t>(array.size())};
}

CsrRows rows_of(const Array<std::int64_t>& offsets, const Array<std::uint32_t>& columns,
                const Array<float>& values) {
  if (offsets.size() == 0) throw py::value_error("indptr is empty");
  return {span_of(offsets), span_of(columns), span_of(values)};
}

CsrRows labels_of(const Array<std::int64_t>& offsets, const Array<std::uint32_t>& columns) {
  if (offsets.size() == 0) throw py::value_error("indptr is empty");
  return {span_of(offsets), span_of(columns), {}};
}

template <typename T>
py::array_t<T> matrix_of(const std::vector<T>& numbers, std::uint32_t width) {
  const auto columns = static_cast<py::ssize_t>(width);
  const auto rows = width == 0 ? 0 : static_cast<py::ssize_t>(numbers.size()) / columns;
  py::array_t<T> array({rows, columns});
  std::memcpy(array.mutable_data(), numbers.data(), numbers.size() * sizeof(T));
  return array;
}

py::tuple tuple_of(const BestLabels& best) {
  return py::make_tuple(matrix_of(best.labels, best.width), matrix_of(best.logits, best.width),
                        matrix_of(best.probabilities, best.width));
}

std::vector<std::string> names_of(const NameTable& names) {
  std::vector<std::string> list;
  for (std::uint32_t id = 0; id < names.size(); ++id) list.emplace_back(names.name(id));
  return list;
}

std::vector<std::pair<std::uint32_t, float>> pairs_of(const std::vector<Contribution>& parts) {
  std::vector<std::pair<std::uint32_t, float>> pairs;
  for (const Contribution& part : parts) pairs.emplace_back(part.feature, part.value);
  return pairs;
}

// The interpreter goes on with other threads meanwhile.
template <typename Work>
auto without_interpreter(const Work& work) {
  const py::gil_scoped_release released;
  return work();
}

void define_model(py::module_& module) {
  py::class_<LoadedModel>(module, "LoadedModel")
      .def_static(
          "open",
          [](const std::string& path, const std::string& data, unsigned threads) {
            return or_raise(
                without_interpreter([&] { return LoadedModel::open(path, data, threads); }));
          },
          py::arg("path"), py::arg("data"), py::arg("threads"))
      .def("best_of_rows",
           [](LoadedModel& self, const Array<std::int64_t>& offsets,
              const Array<std::uint32_t>& columns, const Array<float>& values, std::uint64_t first,
              std::uint32_t top_k) {
             const CsrRows rows = rows_of(offsets, columns, values);
             return tuple_of(or_raise(
                 without_interpreter([&] { return self.best_of_rows(rows, first, top_k); })));
           })
      .def("best_of_texts",
           [](LoadedModel& self, const std::vector<std::string>& texts, std::uint32_t top_k) {
             return tuple_of(
                 or_raise(without_interpreter([&] { return self.best_of_texts(texts, top_k); })));
           })
      .def("why_row",
           [](LoadedModel& self, const Array<std::int64_t>& offsets,
              const Array<std::uint32_t>& columns, const Array<float>& values, std::uint32_t label,
              std::size_t count) {
             return pairs_of(
                 or_raise(self.why_row(rows_of(offsets, columns, values), label, count)));
           })
      .def("why_text",
           [](LoadedModel& self, const std::string& text, std::uint32_t label, std::size_t count) {
             return pairs_of(or_raise(self.why_text(text, label, count)));
           })
      .def_property_readonly("features",
                             [](const LoadedModel& self) { return self.model().config().features; })
      .def_property_readonly("labels",
                             [](const LoadedModel& self) { return self.model().config().labels; })
      .def_property_readonly("hidden",
                             [](const LoadedModel& self) { return self.model().config().hidden; })
      .def_property_readonly("checkpoint",
                             [](const LoadedModel& self) { return self.model().checkpoint(); })
      .def_property_readonly("hidden_units",
                             [](const LoadedModel& self) {
                               const bool is_linear =
                                   self.model().config().hidden_units == HiddenUnits::kLinear;
                               return is_linear ? "linear" : "relu";
                             })
      .def_property_readonly("reads_texts",
                             [](const LoadedModel& self) { return self.data().words() != nullptr; })
      .def("label_names",
           [](const LoadedModel& self) { return names_of(self.data().names().labels); })
      .def("feature_names",
           [](const LoadedModel& self) { return names_of(self.data().names().features); });
}

void define_training(py::module_& module) {
  py::class_<TextWords>(module, "TextWords")
      .def_static("of_rule",
                  [](const std::string& rule) { return or_raise(TextWords::of_rule(rule)); })
      .def_static("of_folder",
                  [](const std::string& folder) { return or_raise(TextWords::of_folder(folder)); })
      .def("count",
           [](TextWords& self, const std::vector<std::string>& texts) {
             for (const std::string& text : texts) self.count(text);
           })
      .def("number", &TextWords::number)
      .def("names", [](const TextWords& self) { return self.model().words.numbered(); })
      .def("json", [](const TextWords& self) { return word_model_json(self.model()); });
  py::class_<TrainingFile>(module, "TrainingFile")
      .def_static("create",
                  [](const std::string& path, std::uint32_t features, std::uint32_t labels,
                     bool normalise) {
                    return or_raise(TrainingFile::create(path, {features, labels}, normalise));
                  })
      .def("add_rows",
           [](TrainingFile& self, const Array<std::int64_t>& offsets,
              const Array<std::uint32_t>& columns, const Array<float>& values,
              const Array<std::int64_t>& label_offsets, const Array<std::uint32_t>& label_columns) {
             or_raise(self.add_rows(rows_of(offsets, columns, values),
                                    labels_of(label_offsets, label_columns)));
           })
      .def("add_texts",
           [](TrainingFile& self, const std::vector<std::string>& texts, const TextWords& words,
              const Array<std::int64_t>& label_offsets, const Array<std::uint32_t>& label_columns) {
             or_raise(self.add_texts(texts, words, labels_of(label_offsets, label_columns)));
           })
      .def("finish", [](TrainingFile& self) { or_raise(self.finish()); });
  module.def("fingerprint", [](const std::string& path) {
    return or_raise(PackedDataset::open(path))->fingerprint();
  });
}

}  // namespace

}  // namespace gleaner

PYBIND11_MODULE(_gleaner, module) {
  gleaner::define_model(module);
  gleaner::define_training(module);
}
