# gleaner dataset: the verbs and what they are made of.
gleaner_library(gleaner_frequency_classes SOURCES frequency_classes.cpp)
gleaner_library(gleaner_synthetic_points
  SOURCES dataset_synth_points.cpp
  LINK gleaner_dataset fmt::fmt)
gleaner_library(gleaner_dataset_tools
  SOURCES dataset_command.cpp dataset_console.cpp dataset_convert.cpp dataset_debian.cpp
          dataset_debian_index.cpp dataset_debian_points.cpp dataset_folder.cpp dataset_info.cpp
          dataset_output.cpp dataset_pack.cpp dataset_sample.cpp dataset_split.cpp
          dataset_statistics.cpp dataset_stats.cpp dataset_stream.cpp dataset_synth.cpp
          dataset_text.cpp dataset_validate.cpp text_records.cpp
          vocabulary.cpp word_model.cpp
  LINK gleaner_synthetic_points gleaner_frequency_classes gleaner_report CSV::csv CLI11::CLI11
       nlohmann_json::nlohmann_json fmt::fmt)
