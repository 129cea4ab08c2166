# The master's core: pure, hence no thread, socket or disk in these.
add_library(gleaner_master_driver STATIC
  ${PROJECT_SOURCE_DIR}/tests/support/master_driver.cpp
  ${PROJECT_SOURCE_DIR}/tests/support/tiny_run.cpp)
target_link_libraries(gleaner_master_driver PUBLIC gleaner_options gleaner_master_core)

gleaner_test(master_parts_test LABEL unit
  SOURCES core/balancer_test.cpp core/evaluation_run_test.cpp
          core/divergence_test.cpp core/input_stream_test.cpp core/lease_table_test.cpp core/pipeline_test.cpp
          core/evaluations_test.cpp core/placement_test.cpp core/sessions_test.cpp core/unit_sizing_test.cpp
  LINK gleaner_master_driver)
gleaner_test(master_core_test LABEL unit
  SOURCES core/master_admission_test.cpp core/master_status_test.cpp core/master_pause_test.cpp core/master_placement_test.cpp
          core/master_input_refusals_test.cpp core/master_input_test.cpp core/master_learning_test.cpp
          core/master_loading_test.cpp core/master_refusals_test.cpp
          core/master_rejoin_test.cpp core/master_rounds_test.cpp core/master_stop_test.cpp core/master_units_test.cpp
  LINK gleaner_master_driver)
gleaner_test(master_audits_test LABEL unit
  SOURCES core/audits/adaptive_audits_test.cpp core/audits/audits_test.cpp core/audits/commit_parts_test.cpp
          core/audits/standby_test.cpp core/audits/trials_test.cpp
  LINK gleaner_master_driver)
