gleaner_test(storage_property_test LABEL property
  SOURCES storage_model_test.cpp ${PROJECT_SOURCE_DIR}/tests/unit/storage/small_run.cpp
  LINK gleaner_storage)
