# A model that a run begins with.
gleaner_fuzz(model SOURCES model_fuzz.cpp LINK gleaner_model_files)

if(GLEANER_FUZZ)
  target_compile_options(gleaner_model_files PRIVATE -fsanitize=fuzzer-no-link)
endif()

# What is asked of a trained one.
gleaner_fuzz(questions SOURCES questions_fuzz.cpp LINK gleaner_predict)
if(GLEANER_FUZZ)
  target_compile_options(gleaner_predict PRIVATE -fsanitize=fuzzer-no-link)
endif()
