# The volunteer's core: pure, hence no thread, socket or disk in these.
gleaner_test(volunteer_core_test LABEL unit
  SOURCES core/backoff_test.cpp core/volunteer_connection_test.cpp core/volunteer_pause_test.cpp core/volunteer_rejoin_test.cpp
          core/volunteer_thanks_test.cpp core/volunteer_until_test.cpp core/volunteer_work_test.cpp
          ${PROJECT_SOURCE_DIR}/tests/support/tiny_run.cpp
          ${PROJECT_SOURCE_DIR}/tests/support/volunteer_driver.cpp
  LINK gleaner_volunteer_core)
gleaner_test(executor_test LABEL unit
  SOURCES executor_test.cpp example_work_test.cpp
          ${PROJECT_SOURCE_DIR}/tests/support/watched_memory.cpp
          ${PROJECT_SOURCE_DIR}/tests/support/tiny_run.cpp
  LINK gleaner_volunteer)
gleaner_test(volunteer_shell_test LABEL unit
  SOURCES client_test.cpp identity_test.cpp
          ${PROJECT_SOURCE_DIR}/tests/support/watched_memory.cpp
          ${PROJECT_SOURCE_DIR}/tests/support/tiny_run.cpp
  LINK gleaner_volunteer)
gleaner_test(point_cache_test LABEL unit SOURCES point_cache_test.cpp LINK gleaner_volunteer)
gleaner_test(point_store_test LABEL unit SOURCES point_store_test.cpp LINK gleaner_volunteer)
