# What comes out of files: text, compressed or not, packed sets, tables of texts.
gleaner_fuzz(dataset_text SOURCES dataset_text_fuzz.cpp LINK gleaner_dataset)
gleaner_fuzz(dataset_packed SOURCES dataset_packed_fuzz.cpp LINK gleaner_dataset)
gleaner_fuzz(dataset_records SOURCES dataset_records_fuzz.cpp LINK gleaner_dataset_tools)

if(GLEANER_FUZZ)
  foreach(library gleaner_dataset gleaner_dataset_stream gleaner_dataset_tools)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()
