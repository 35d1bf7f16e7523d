# Tests of kvlane::prometheus, and a page of its metrics checked by Prometheus's own tool. Without prometheus-cpp there are none.
if(NOT TARGET kvlane::prometheus)
  return()
endif()

kvlane_add_tests(prometheus LINK kvlane::prometheus)
if(TARGET kvlane_prometheus_tests)
  target_compile_definitions(kvlane_prometheus_tests PRIVATE "KVLANE_METRICS_DOC=\"${PROJECT_SOURCE_DIR}/docs/metrics.md\"")
endif()

add_executable(kvlane_metrics_page prometheus/metrics_page.cpp)
target_link_libraries(kvlane_metrics_page PRIVATE kvlane::prometheus kvlane_warnings)

find_program(KVLANE_PROMTOOL promtool)
mark_as_advanced(KVLANE_PROMTOOL)
if(KVLANE_PROMTOOL)
  add_test(NAME prometheus.promtool COMMAND "${CMAKE_COMMAND}" -D "PAGE=$<TARGET_FILE:kvlane_metrics_page>" -D "PROMTOOL=${KVLANE_PROMTOOL}" -P
                                            "${CMAKE_CURRENT_SOURCE_DIR}/prometheus/check-page.cmake")
else()
  add_test(NAME prometheus.promtool COMMAND "${CMAKE_COMMAND}" -E echo "not checked: promtool is missing (Debian: the package prometheus)")
  set_tests_properties(prometheus.promtool PROPERTIES SKIP_REGULAR_EXPRESSION "not checked")
endif()
set_tests_properties(prometheus.promtool PROPERTIES LABELS "prometheus;once" TIMEOUT 60)
