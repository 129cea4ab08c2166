# The page's server-side parts: pure but for the server itself, which the end-to-end tests ask.
gleaner_test(master_http_test LABEL unit
  SOURCES http/annif_test.cpp http/answer_budget_test.cpp http/credit_tally_test.cpp http/history_series_test.cpp http/readers_test.cpp http/run_api_test.cpp http/served_program_test.cpp http/time_spent_test.cpp
  LINK gleaner_master_see nlohmann_json::nlohmann_json fmt::fmt)
