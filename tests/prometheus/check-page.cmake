# cmake -D PAGE=<program that prints a page of metrics> -D PROMTOOL=<promtool> -P check-page.cmake
#
# promtool ends with 1 for what is no page of metrics and with 3 for what breaks the rules of naming and help; both fail.
cmake_minimum_required(VERSION 3.25)

execute_process(
  COMMAND "${PAGE}"
  COMMAND "${PROMTOOL}" check metrics
  RESULTS_VARIABLE statuses
  OUTPUT_VARIABLE said
  ERROR_VARIABLE said)
if(NOT statuses STREQUAL "0;0")
  message("${said}")
  message(FATAL_ERROR "the page or promtool ended with: ${statuses}")
endif()
