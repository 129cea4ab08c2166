gleaner_library(gleaner_one_process
  SOURCES one_process_run.cpp
  LINK gleaner_train gleaner_input_layer gleaner_dataset gleaner_schema)
# gleaner bench: the verb and its loops.
gleaner_library(gleaner_bench_tools
  SOURCES bench_codec.cpp bench_command.cpp bench_files.cpp bench_kernels.cpp bench_layer.cpp bench_messages.cpp
          bench_peaks.cpp bench_step.cpp bench_storage.cpp bench_training.cpp
  LINK gleaner_net gleaner_kernels gleaner_one_process gleaner_synthetic_points gleaner_schema gleaner_storage
       gleaner_store_tools CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt)
# The peaks are what the compiler can do with them.
set_source_files_properties(bench_peaks.cpp PROPERTIES COMPILE_OPTIONS -O3)
