gleaner_test(dataset_property_test LABEL property
  SOURCES dataset_forms_test.cpp
  LINK gleaner_data ZLIB::ZLIB PkgConfig::ZSTD)
