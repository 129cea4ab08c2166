# gleaner_library(NAME [COLD] SOURCES files... [LINK targets...]): a static library, with the flags of gleaner_options.
# COLD: no loop in it is worth the time of the compiler's second level.
function(gleaner_library name)
  cmake_parse_arguments(ARG "COLD" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gleaner_options ${ARG_LINK})
  if(ARG_COLD AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()
