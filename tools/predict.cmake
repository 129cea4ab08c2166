# gleaner predict: the verb, and a trained model read from a store.
gleaner_library(gleaner_stored_model
  SOURCES quality.cpp scored_label.cpp stored_model.cpp table_search.cpp
  LINK gleaner_storage gleaner_input_layer gleaner_train gleaner_metrics gleaner_dataset
       gleaner_frequency_classes gleaner_model_files fmt::fmt)
gleaner_library(gleaner_predict_tools
  SOURCES evaluate_command.cpp export_command.cpp joined_model.cpp predict_command.cpp predict_points.cpp predict_report.cpp predict_run.cpp
  LINK gleaner_stored_model gleaner_dataset_tools gleaner_store_tools gleaner_terminal
       CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt)
