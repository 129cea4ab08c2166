# gleaner plan: formulas apart from everything that measures, reads or prints.
gleaner_library(gleaner_plan
  SOURCES plan.cpp plan_resources.cpp plan_work.cpp
  LINK gleaner_train gleaner_common fmt::fmt)
gleaner_library(gleaner_plan_tools
  SOURCES plan_command.cpp plan_costs.cpp plan_report.cpp
  LINK gleaner_plan gleaner_bench_tools gleaner_report CLI11::CLI11 nlohmann_json::nlohmann_json fmt::fmt)
