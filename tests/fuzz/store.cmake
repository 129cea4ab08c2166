# What tools read of a store, whatever is in it.
set(unit ${PROJECT_SOURCE_DIR}/tests/unit)
gleaner_fuzz(store
  SOURCES store_fuzz.cpp ${unit}/tools/sound_run.cpp ${unit}/storage/small_run.cpp
  LINK gleaner_audit gleaner_inspect_tools gleaner_stored_model)

if(GLEANER_FUZZ)
  foreach(library gleaner_audit gleaner_cli gleaner_inspect_tools gleaner_model_files gleaner_storage
                  gleaner_store_engine gleaner_stored_model)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()
