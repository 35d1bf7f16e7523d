# Installs the OpenAI client into a folder of the build, exactly as package-lock.json says. Quick when it is there.
#
#   cmake -D FROM=<this folder> -D TO=<folder> -D NPM=<npm> -P install-client.cmake
#
# Without npm, or without a network, it says "not checked", which ctest counts as skipped. A package that is not what the lock file
# promises is a failure.
foreach(variable IN ITEMS FROM TO NPM)
  if(NOT DEFINED ${variable})
    message(FATAL_ERROR "${variable} is not set")
  endif()
endforeach()

file(SHA256 "${FROM}/package-lock.json" wanted)
set(stamp "${TO}/installed.sha256")
if(EXISTS "${stamp}")
  file(READ "${stamp}" installed)
  if(installed STREQUAL wanted AND IS_DIRECTORY "${TO}/node_modules/openai")
    return()
  endif()
endif()
if(NOT NPM)
  message(NOTICE "not checked: npm is missing (Debian: the package npm)")
  return()
endif()

file(REMOVE "${stamp}")
file(MAKE_DIRECTORY "${TO}")
file(COPY "${FROM}/package.json" "${FROM}/package-lock.json" DESTINATION "${TO}")
execute_process(
  COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --fetch-retries=1 --fetch-timeout=20000
  WORKING_DIRECTORY "${TO}"
  TIMEOUT 100
  RESULT_VARIABLE status
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(status EQUAL 0)
  file(WRITE "${stamp}" "${wanted}")
elseif(output MATCHES "EINTEGRITY|EUSAGE")
  message(FATAL_ERROR "npm refuses what package-lock.json asks for:\n${output}")
else()
  file(REMOVE_RECURSE "${TO}/node_modules")
  message(NOTICE "not checked: npm could not install the openai client (${status}):\n${output}")
endif()
