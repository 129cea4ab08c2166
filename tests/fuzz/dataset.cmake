# What comes out of files: text, compressed or not, packed sets, the package index, tables of texts.
gleaner_fuzz(dataset_text SOURCES dataset_text_fuzz.cpp LINK gleaner_data)
gleaner_fuzz(dataset_packed SOURCES dataset_packed_fuzz.cpp LINK gleaner_data)
gleaner_fuzz(dataset_index SOURCES dataset_index_fuzz.cpp LINK gleaner_dataset_tools)
gleaner_fuzz(dataset_records SOURCES dataset_records_fuzz.cpp LINK gleaner_dataset_tools)

if(GLEANER_FUZZ)
  foreach(library gleaner_data gleaner_dataset_files gleaner_dataset_make)
    target_compile_options(${library} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
endif()
