// The Python module: a model that answers, words, and a training file that is written. The package
// checks what it hands over: rows are in CSR form, canonical, within their width, and finite.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/data/packed_writer.hpp"
#include "common/data/word_model.hpp"
#include "common/limits.hpp"
#include "common/result.hpp"
#include "tools/predict/ranking_quality.hpp"
#include "tools/python/interrupts.hpp"
#include "tools/python/loaded_model.hpp"

namespace py = pybind11;

PYBIND11_MAKE_OPAQUE(std::vector<gleaner::Point>);

namespace gleaner {
namespace {

template <typename T>
using Array = py::array_t<T, py::array::c_style>;
using Offsets = Array<std::int64_t>;
using Columns = Array<std::uint32_t>;
using Points = std::vector<Point>;
using Texts = std::vector<std::string>;

template <typename T>
T or_raise(Result<T> result) {
  if (result) return std::move(*result);
  const Error& error = result.error();
  PyObject* kind = PyExc_RuntimeError;
  const auto is = [&](ErrorCode a, ErrorCode b) { return error.code == a || error.code == b; };
  if (is(ErrorCode::kInvalidArgument, ErrorCode::kInvalidData)) kind = PyExc_ValueError;
  if (is(ErrorCode::kIo, ErrorCode::kDiskFull)) kind = PyExc_OSError;
  if (error.code == ErrorCode::kNotFound) kind = PyExc_FileNotFoundError;
  PyErr_SetString(kind, error.message.c_str());
  throw py::error_already_set();
}

bool or_raise(const Result<void>& result) {
  return or_raise(result ? Result<bool>(true) : Result<bool>(result.error()));
}

// The interpreter goes on with other threads meanwhile. At its end it ends other threads where they
// come back to it, which no destructor survives.
template <typename Work>
auto without_interpreter(const Work& work) {
  PyThreadState* const thread = PyEval_SaveThread();
  auto result = [&work, thread] {
    try {
      return work();
    } catch (...) {
      PyEval_RestoreThread(thread);
      throw;
    }
  }();
  PyEval_RestoreThread(thread);
  return result;
}

template <typename T>
std::span<const T> row_of(const Array<T>& array, const Offsets& offsets, std::size_t row) {
  const std::int64_t* bounds = offsets.data() + row;
  return {array.data() + bounds[0], static_cast<std::size_t>(bounds[1] - bounds[0])};
}

Points points_of(const Offsets& offsets, const Columns& columns, const Array<float>& values) {
  Points points(static_cast<std::size_t>(offsets.size() - 1));
  for (std::size_t row = 0; row < points.size(); ++row) {
    const auto ids = row_of(columns, offsets, row);
    const auto numbers = row_of(values, offsets, row);
    points[row] = {{}, {ids.begin(), ids.end()}, {numbers.begin(), numbers.end()}};
  }
  return points;
}

Points points_of(const WordModel& words, const Texts& texts) {
  return without_interpreter([&] {
    Points points;
    for (const std::string& text : texts) points.push_back(words.point_of(text));
    return points;
  });
}

template <typename T>
py::array_t<T> matrix_of(const std::vector<T>& numbers, std::uint32_t width) {
  const auto columns = static_cast<py::ssize_t>(width);
  const auto rows = width == 0 ? 0 : static_cast<py::ssize_t>(numbers.size()) / columns;
  py::array_t<T> array({rows, columns});
  std::memcpy(array.mutable_data(), numbers.data(), numbers.size() * sizeof(T));
  return array;
}

Texts names_of(const NameTable& names) {
  Texts list;
  for (std::uint32_t id = 0; id < names.size(); ++id) list.emplace_back(names.name(id));
  return list;
}

// A warning of Python's, which its user may turn into an exception.
void warn_of_dictionaries(const WordModel* words, const std::string& source) {
  const std::string note = words == nullptr ? "" : words->dictionary_note(source);
  if (!note.empty() && PyErr_WarnEx(PyExc_UserWarning, note.c_str(), 1) != 0) {
    throw py::error_already_set();
  }
}

void define_model(py::module_& module) {
  using Model = LoadedModel;
  py::class_<Model>(module, "LoadedModel")
      .def_static("open",
                  [](const std::string& path, const std::string& data, unsigned threads) {
                    auto model = or_raise(
                        without_interpreter([&] { return Model::open(path, data, threads); }));
                    warn_of_dictionaries(model->data.words(), data.empty() ? path : data);
                    return model;
                  })
      .def("points", [](const Model& self,
                        const Texts& texts) { return points_of(*self.data.words(), texts); })
      .def("best",
           [](Model& self, const Points& points, std::uint32_t top_k) {
             std::vector<std::uint32_t> labels;
             std::vector<float> logits;
             const auto best =
                 or_raise(without_interpreter([&] { return self.best(points, top_k); }));
             for (const ScoredLabel& label : best) {
               labels.push_back(label.label);
               logits.push_back(label.logit);
             }
             const std::uint32_t width = self.model->entries(top_k);
             return py::make_tuple(
                 matrix_of(labels, width), matrix_of(logits, width),
                 matrix_of(probabilities_of(self.model->config(), self.model->calibration(), best),
                           width));
           })
      .def("why",
           [](Model& self, const Points& points, std::uint32_t label, std::size_t count) {
             std::vector<std::pair<std::uint32_t, float>> pairs;
             for (const Contribution& part :
                  without_interpreter([&] { return self.why(points.at(0), label, count); })) {
               pairs.emplace_back(part.feature, part.value);
             }
             return pairs;
           })
      .def("save",
           [](Model& self, const std::string& path) {
             return or_raise(without_interpreter([&] { return self.save(path); }));
           })
      .def("forget_threads", &Model::forget_threads)
      .def("label_names", [](const Model& self) { return names_of(self.data.names().labels); })
      .def("feature_names", [](const Model& self) { return names_of(self.data.names().features); })
      .def("words", [](const Model& self) { return *self.data.words(); })
      .def_property_readonly("facts", [](Model& self) {
        const ModelConfig& config = self.model->config();
        using namespace py::literals;
        return py::dict(
            "features"_a = config.features, "labels"_a = config.labels, "hidden"_a = config.hidden,
            "checkpoint"_a = self.model->checkpoint(),
            "hidden_units"_a = config.hidden_units == HiddenUnits::kLinear ? "linear" : "relu",
            "reads_texts"_a = self.data.words() != nullptr);
      });
}

void define_training(py::module_& module) {
  py::class_<Points>(module, "Points")
      .def(py::init([](const Offsets& offsets, const Columns& columns, const Array<float>& values) {
        return points_of(offsets, columns, values);
      }));
  py::class_<WordModel>(module, "Words")
      .def(py::init([](const std::string& rule) {
        WordModel words;
        words.rule = or_raise(parse_word_rule(rule));
        words.fields = {{"text"}, "tags", "", "list"};
        return words;
      }))
      .def("count",
           [](WordModel& self, const Texts& texts) {
             self.points += texts.size();
             return without_interpreter([&] {
               for (const std::string& text : texts) {
                 for (const auto& [word, times] : counted_words(self.rule, text)) {
                   self.words.count(word);
                 }
               }
               return true;
             });
           })
      .def("number", [](WordModel& self, std::uint32_t least) { self.words.number(least); })
      .def("names", [](const WordModel& self) { return self.words.numbered(); })
      .def("json", [](const WordModel& self) { return word_model_json(self); })
      .def("points",
           [](const WordModel& self, const Texts& texts) { return points_of(self, texts); });
  py::class_<PackedWriter>(module, "TrainingFile")
      .def_static("create",
                  [](const std::string& path, bool normalise) {
                    return or_raise(PackedWriter::create(path, normalise));
                  })
      .def("add",
           [](PackedWriter& self, const Points& points, const Offsets& offsets,
              const Columns& labels) {
             return or_raise(without_interpreter([&]() -> Result<void> {
               for (std::size_t row = 0; row < points.size(); ++row) {
                 Point point = points[row];
                 const auto own = row_of(labels, offsets, row);
                 point.labels.assign(own.begin(), own.end());
                 if (auto added = self.add(point); !added) return added;
               }
               return {};
             }));
           })
      .def("finish", [](PackedWriter& self, std::uint32_t features, std::uint32_t labels) {
        return or_raise(without_interpreter([&] {
          return self.finish({features, labels}, {}, "", AtomicFile::Existing::kReplace);
        }));
      });
}

// The figures of `gleaner evaluate` for answers that a Python program has.
struct AnswerFigures {
  explicit AnswerFigures(const AnsweringModel& model)
      : propensities(model.label_counts(), model.config().points), classes(model.label_counts()) {}

  AnswerFigures(const AnswerFigures&) = delete;  // parts refer to each other
  AnswerFigures& operator=(const AnswerFigures&) = delete;

  // True labels, ascending, and the best ones, row by row.
  void add(const Offsets& offsets, const Columns& labels, const Columns& best) {
    const auto width = static_cast<std::size_t>(best.shape(1));
    for (std::size_t row = 0; row < static_cast<std::size_t>(best.shape(0)); ++row) {
      quality.add(row_of(labels, offsets, row), {best.data() + row * width, width});
    }
  }

  // By name; not a number where no example has labels.
  [[nodiscard]] std::map<std::string, double> figures() const {
    std::map<std::string, double> figures = {{"ndcg_at_3", quality.ndcg(1)},
                                             {"ndcg_at_5", quality.ndcg(2)},
                                             {"recall_at_5", quality.recall(2)},
                                             {"evaluated", static_cast<double>(quality.points())}};
    Precision precision = quality.precision();
    visit_depths(precision, [&](const char* name, const char*, double value) {
      figures[name] = quality.points() == 0 ? std::nan("") : value;
    });
    constexpr std::array kNames = {"head", "torso", "tail"};
    for (std::size_t c = 0; c < kFrequencyClasses; ++c) {
      const Quality::ByClass& own = quality.by_class(c);
      figures[std::string("recall_at_5_") + kNames[c]] =
          static_cast<double>(own.hits[2]) / static_cast<double>(own.true_labels);
    }
    return figures;
  }

  InversePropensities propensities;
  FrequencyClasses classes;
  Quality quality{propensities, classes};
};

void define_figures(py::module_& module) {
  py::class_<AnswerFigures>(module, "AnswerFigures")
      .def(py::init(
          [](const LoadedModel& model) { return std::make_unique<AnswerFigures>(*model.model); }))
      .def("add", &AnswerFigures::add)
      .def("figures", &AnswerFigures::figures);
}

}  // namespace
}  // namespace gleaner

PYBIND11_MODULE(_gleaner, module) {
  using namespace gleaner;
  define_model(module);
  define_training(module);
  define_figures(module);
  module.def("watch_interrupts", &watch_interrupts);
  module.def("interrupts", [] { return interrupt_count.load(); });
  module.def("end_without_destructors", &end_without_destructors);
  module.attr("LABELS_MAX") = kLabelsMax;
  module.attr("FEATURES_MAX") = kFeaturesMax;
}
