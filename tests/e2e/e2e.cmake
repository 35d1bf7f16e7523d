# kvlane-server against the OpenAI client for node: each scenario of e2e/*_test.mjs is a ctest, e2e.<file>.<sentence>. The client is
# installed into the build folder by the test e2e.client; without it, or without node, they are skipped.
if(NOT TARGET kvlane-server OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  return()
endif()

find_program(KVLANE_NODE NAMES node nodejs)
find_program(KVLANE_NPM npm)
mark_as_advanced(KVLANE_NODE KVLANE_NPM)
set(e2e_packages "${CMAKE_CURRENT_BINARY_DIR}/e2e")
set(e2e_sanitized 0)
if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(e2e_sanitized 1)
endif()

add_test(NAME e2e.client COMMAND "${CMAKE_COMMAND}" -D "FROM=${CMAKE_CURRENT_SOURCE_DIR}/e2e" -D "TO=${e2e_packages}" -D "NPM=${KVLANE_NPM}" -P
                                 "${PROJECT_SOURCE_DIR}/cmake/npm-install.cmake")
set_tests_properties(e2e.client PROPERTIES LABELS e2e FIXTURES_SETUP openai_client TIMEOUT 120 SKIP_REGULAR_EXPRESSION "not checked")

file(GLOB e2e_files CONFIGURE_DEPENDS e2e/*_test.mjs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${e2e_files})
foreach(file IN LISTS e2e_files)
  cmake_path(GET file STEM stem)
  string(REGEX REPLACE "_test$" "" stem "${stem}")
  file(STRINGS "${file}" calls REGEX "^scenario\\('")
  foreach(call IN LISTS calls)
    string(REGEX REPLACE "^scenario\\('([^']*)'.*" "\\1" sentence "${call}")
    string(REPLACE " " "_" name "e2e.${stem}.${sentence}")
    if(KVLANE_NODE)
      add_test(NAME ${name} COMMAND "${KVLANE_NODE}" --test-reporter=spec "--test-name-pattern=^${sentence}$" "${file}")
    else()
      add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "not checked: node is missing (Debian: the package nodejs)")
    endif()
    # A pattern that matches nothing would pass.
    set_tests_properties(
      ${name}
      PROPERTIES LABELS e2e
                 FIXTURES_REQUIRED openai_client
                 TIMEOUT 60
                 SKIP_REGULAR_EXPRESSION "not checked"
                 FAIL_REGULAR_EXPRESSION "pass 0"
                 ENVIRONMENT "KVLANE_SERVER=$<TARGET_FILE:kvlane-server>;KVLANE_E2E_PACKAGES=${e2e_packages};KVLANE_E2E_SANITIZED=${e2e_sanitized}")
  endforeach()
endforeach()
