// The Python module: a model that answers and a training file that is written, with arrays in the
// types of CsrRows; the package sees to that.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/data/packed_dataset.hpp"
#include "common/data/packed_writer.hpp"
#include "common/data/word_model.hpp"
#include "common/result.hpp"
#include "storage/infer/answering_model.hpp"
#include "storage/infer/predict_data.hpp"
#include "storage/infer/prediction.hpp"
#include "tools/python/loaded_model.hpp"
#include "tools/python/training_file.hpp"

namespace py = pybind11;

namespace gleaner {
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

// A warning of Python's, which its user may turn into an exception.
void warn_of_dictionaries(const WordModel* words, const std::string& source) {
  const std::string note = words == nullptr ? "" : words->dictionary_note(source);
  if (!note.empty() && PyErr_WarnEx(PyExc_UserWarning, note.c_str(), 1) != 0) {
    throw py::error_already_set();
  }
}

void define_model(py::module_& module) {
  py::class_<LoadedModel>(module, "LoadedModel")
      .def_static(
          "open",
          [](const std::string& path, const std::string& data, unsigned threads) {
            auto model = or_raise(
                without_interpreter([&] { return LoadedModel::open(path, data, threads); }));
            warn_of_dictionaries(model->data().words(), data.empty() ? path : data);
            return model;
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
                  [](const std::string& folder) {
                    TextWords words = or_raise(TextWords::of_folder(folder));
                    warn_of_dictionaries(&words.model(), folder);
                    return words;
                  })
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
