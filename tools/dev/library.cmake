# gleaner_library(NAME SOURCES files... [LINK targets...]): a static library, with the flags of gleaner_options.
function(gleaner_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC gleaner_options ${ARG_LINK})
endfunction()
