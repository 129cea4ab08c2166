# A model that a run begins with.
gleaner_fuzz(model SOURCES model_fuzz.cpp LINK gleaner_initial_model)

if(GLEANER_FUZZ)
  target_compile_options(gleaner_initial_model PRIVATE -fsanitize=fuzzer-no-link)
endif()
