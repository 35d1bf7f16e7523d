# The test `tidy`: clang-tidy over every header and the compiled part. One translation unit that includes all headers of the core, so
# that the checks run once for each header and not once for each of its users.
set(tidy_text "")
set(tidy_headers ${kvlane_core_headers})
foreach(component IN ITEMS asio boost_asio prometheus)
  if(TARGET kvlane::${component})
    list(APPEND tidy_headers "${kvlane_include_dir}/kvlane/${component}.hpp")
  endif()
endforeach()
foreach(header IN LISTS tidy_headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${kvlane_include_dir}")
  string(APPEND tidy_text "#include <${header}>\n")
endforeach()
set(tidy_source "${CMAKE_CURRENT_BINARY_DIR}/tidy/all_headers.cpp")
file(WRITE "${tidy_source}" "${tidy_text}")

add_test(NAME tidy COMMAND "${KVLANE_CLANG_TIDY}" --quiet "--config-file=${PROJECT_SOURCE_DIR}/.clang-tidy" "--header-filter=${kvlane_include_dir}/.*"
                           --warnings-as-errors=* "${tidy_source}" ${kvlane_sources} -- ${cxx_flags} -std=c++20 "-I${kvlane_include_dir}")
set_tests_properties(tidy PROPERTIES LABELS "tidy;once" TIMEOUT 300)
