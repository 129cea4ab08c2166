# What arrives from peers and from the store.
# What people paste, and the file of invites.
gleaner_fuzz(access SOURCES access_fuzz.cpp LINK gleaner_master_door)
gleaner_fuzz(message SOURCES message_fuzz.cpp LINK gleaner_codec gleaner_frame)
gleaner_fuzz(hidden SOURCES hidden_fuzz.cpp LINK gleaner_schema)
gleaner_fuzz(gradient SOURCES gradient_fuzz.cpp LINK gleaner_schema)
gleaner_fuzz(input_parts SOURCES input_parts_fuzz.cpp LINK gleaner_schema)
gleaner_fuzz(update SOURCES update_fuzz.cpp LINK gleaner_codec)

# Fuzzing is only as good as the library's own instrumentation.
if(GLEANER_FUZZ)
  foreach(library gleaner_codec gleaner_schema gleaner_frame gleaner_wire)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()

# Writes the corpora and the codec's golden file; run by hand when a format changes.
add_executable(make_wire_corpus make_wire_corpus.cpp)
target_link_libraries(make_wire_corpus PRIVATE gleaner_options gleaner_codec_messages gleaner_frame)
set_target_properties(make_wire_corpus PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
