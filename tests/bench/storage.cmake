# Tiny in ctest, so that it cannot rot; real numbers come from the release build.
add_executable(storage_bench storage_bench.cpp)
target_link_libraries(storage_bench PRIVATE gleaner_storage)
set_target_properties(storage_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
add_test(NAME storage_bench COMMAND storage_bench)
set_tests_properties(storage_bench PROPERTIES LABELS bench TIMEOUT 60)
