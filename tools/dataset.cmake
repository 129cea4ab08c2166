# gleaner dataset: the verbs and what they are made of.
gleaner_library(gleaner_dataset_tools
  SOURCES dataset_command.cpp dataset_console.cpp dataset_debian.cpp dataset_debian_index.cpp
          dataset_debian_points.cpp dataset_info.cpp dataset_pack.cpp dataset_split.cpp
          dataset_statistics.cpp dataset_stream.cpp dataset_synth.cpp dataset_synth_points.cpp
  LINK gleaner_dataset CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt)
