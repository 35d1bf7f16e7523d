# The page of kvlane-replay sweep --report in a headless Chromium: each scenario of page_test.mjs is part of one ctest, report.page. The
# driver is installed into the build folder by the test report.driver; without it, or without node or Chromium, they are skipped.
if(NOT TARGET kvlane-replay OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  return()
endif()

find_program(KVLANE_NODE NAMES node nodejs)
find_program(KVLANE_NPM npm)
find_program(KVLANE_CHROMIUM NAMES chromium chromium-browser google-chrome)
mark_as_advanced(KVLANE_NODE KVLANE_NPM KVLANE_CHROMIUM)
set(report_packages "${CMAKE_CURRENT_BINARY_DIR}/report")

add_test(NAME report.driver COMMAND "${CMAKE_COMMAND}" -D "FROM=${CMAKE_CURRENT_SOURCE_DIR}/report" -D "TO=${report_packages}" -D
                                    "NPM=${KVLANE_NPM}" -P "${PROJECT_SOURCE_DIR}/cmake/npm-install.cmake")
set_tests_properties(report.driver PROPERTIES LABELS "report;once" FIXTURES_SETUP browser_driver TIMEOUT 120 SKIP_REGULAR_EXPRESSION
                                                                                                            "not checked")
if(NOT KVLANE_NODE)
  add_test(NAME report.page COMMAND "${CMAKE_COMMAND}" -E echo "not checked: node is missing (Debian: the package nodejs)")
elseif(NOT KVLANE_CHROMIUM)
  add_test(NAME report.page COMMAND "${CMAKE_COMMAND}" -E echo "not checked: Chromium is missing (Debian: the package chromium)")
else()
  add_test(NAME report.page COMMAND "${KVLANE_NODE}" --test-reporter=spec "${CMAKE_CURRENT_SOURCE_DIR}/report/page_test.mjs")
endif()
set_tests_properties(
  report.page
  PROPERTIES LABELS "report;once"
             FIXTURES_REQUIRED browser_driver
             TIMEOUT 60
             SKIP_REGULAR_EXPRESSION "not checked"
             FAIL_REGULAR_EXPRESSION "pass 0"
             ENVIRONMENT "KVLANE_REPLAY=$<TARGET_FILE:kvlane-replay>;KVLANE_REPORT_PACKAGES=${report_packages};KVLANE_CHROMIUM=${KVLANE_CHROMIUM}")

# A program that was built where uPlot could not be had.
set(without_charts "${report_packages}/without_charts/page_text.cpp")
set(page_folder "${PROJECT_SOURCE_DIR}/examples/replay/report")
add_custom_command(
  OUTPUT "${without_charts}"
  COMMAND "${CMAKE_COMMAND}" -D WITHOUT_CHARTS=ON -D "OUTPUT=${without_charts}" -P "${page_folder}/embed-page.cmake"
  DEPENDS "${page_folder}/embed-page.cmake"
  COMMENT "Embedding no page"
  VERBATIM)
add_executable(kvlane_replay_without_charts "${PROJECT_SOURCE_DIR}/examples/replay/main.cpp" "${without_charts}")
target_link_libraries(kvlane_replay_without_charts PRIVATE kvlane_replay_lib kvlane_warnings)
add_test(NAME report.without_charts COMMAND kvlane_replay_without_charts sweep --synthetic --chats 2 --report never-written.html)
set_tests_properties(report.without_charts PROPERTIES LABELS "report;once" TIMEOUT 20 PASS_REGULAR_EXPRESSION
                                                      "this build has no charts.*install npm.*remove .*page_text.cpp and build again")
