# gleaner predict: a trained model read from a store, and what the verb makes of it.
gleaner_test(predict_test LABEL unit
  SOURCES predict_report_test.cpp predict_points_test.cpp stored_model_test.cpp quality_test.cpp
          ../storage/small_run.cpp
  LINK gleaner_predict_tools)

# A whole run of the master, and its recorded evaluation against the verb's output.
gleaner_test(predict_run_test LABEL sim
  SOURCES predict_run_test.cpp
  LINK gleaner_predict_tools gleaner_master_shell)

add_test(NAME predict_program_test
  COMMAND Python3::Interpreter ${CMAKE_CURRENT_SOURCE_DIR}/predict_program_test.py
          $<TARGET_FILE:gleaner> $<TARGET_FILE:gleaner-master>)
set_tests_properties(predict_program_test PROPERTIES LABELS e2e TIMEOUT 120)
