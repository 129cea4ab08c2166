# A model that a run begins with.
gleaner_fuzz(model SOURCES model_fuzz.cpp LINK gleaner_keep)

if(GLEANER_FUZZ)
  target_compile_options(gleaner_keep PRIVATE -fsanitize=fuzzer-no-link)
endif()

# What is asked of a trained one.
gleaner_fuzz(questions SOURCES questions_fuzz.cpp LINK gleaner_infer)
if(GLEANER_FUZZ)
  target_compile_options(gleaner_infer PRIVATE -fsanitize=fuzzer-no-link)
endif()
