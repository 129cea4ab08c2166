# What tools read of a store, whatever is in it.
set(unit ${PROJECT_SOURCE_DIR}/tests/unit)
gleaner_fuzz(store
  SOURCES store_fuzz.cpp ${unit}/tools/sound_run.cpp ${unit}/storage/small_run.cpp
  LINK gleaner_keep gleaner_look_tools gleaner_infer)

if(GLEANER_FUZZ)
  foreach(library gleaner_keep gleaner_cli gleaner_look_tools gleaner_storage
                  gleaner_store_engine gleaner_infer)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()
