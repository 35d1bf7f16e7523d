# Installs npm packages into a folder of the build, exactly as a package-lock.json says. Quick when they are there.
#
#   cmake -D FROM=<folder of package.json and package-lock.json> -D TO=<folder> -D NPM=<npm> -P npm-install.cmake
#
# Other scripts include it with these variables set. Without npm, or without a network, it says "not checked", which ctest counts as
# skipped, and there is no <TO>/node_modules. A package that is not what the lock file promises is a failure.
foreach(variable IN ITEMS FROM TO NPM)
  if(NOT DEFINED ${variable})
    message(FATAL_ERROR "${variable} is not set")
  endif()
endforeach()

file(SHA256 "${FROM}/package-lock.json" wanted)
set(stamp "${TO}/installed.sha256")
if(EXISTS "${stamp}")
  file(READ "${stamp}" installed)
  if(installed STREQUAL wanted AND EXISTS "${TO}/node_modules/.package-lock.json")
    return()
  endif()
endif()
file(REMOVE "${stamp}")
file(REMOVE_RECURSE "${TO}/node_modules")
if(NOT NPM)
  message(NOTICE "not checked: npm is missing (Debian: the package npm)")
  return()
endif()

file(MAKE_DIRECTORY "${TO}")
file(COPY "${FROM}/package.json" "${FROM}/package-lock.json" DESTINATION "${TO}")
execute_process(
  COMMAND "${NPM}" ci --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1 --fetch-timeout=20000
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
  message(NOTICE "not checked: npm could not install the packages of ${FROM}/package.json (${status}):\n${output}")
endif()
