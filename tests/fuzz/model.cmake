# A model that a run begins with.
gleaner_fuzz(model SOURCES model_fuzz.cpp LINK gleaner_model_files)

if(GLEANER_FUZZ)
  target_compile_options(gleaner_model_files PRIVATE -fsanitize=fuzzer-no-link)
endif()
