# What tools read of a store, whatever is in it.
set(unit ${PROJECT_SOURCE_DIR}/tests/unit)
gleaner_fuzz(store
  SOURCES store_fuzz.cpp ${unit}/tools/sound_run.cpp ${unit}/storage/small_run.cpp
  LINK gleaner_audit gleaner_stored_model gleaner_store_tools)

if(GLEANER_FUZZ)
  foreach(library gleaner_audit gleaner_model_files gleaner_storage gleaner_stored_model
                  gleaner_store_tools)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()
