# Messages for tests; the fuzzers' corpora are made from them as well.
add_library(gleaner_codec_messages STATIC codec_equality.cpp codec_messages.cpp codec_samples.cpp codec_tool_messages.cpp)
target_link_libraries(gleaner_codec_messages PUBLIC gleaner_codec)

gleaner_test(codec_property_test LABEL property
  SOURCES codec_sizes_test.cpp codec_test.cpp
  LINK gleaner_codec_messages gleaner_frame)
target_compile_definitions(codec_property_test PRIVATE
  GLEANER_CODEC_GOLDEN="${CMAKE_CURRENT_SOURCE_DIR}/codec_golden.txt")
