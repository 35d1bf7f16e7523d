# cmake -D PKG_CONFIG=<program> -D PC_DIR=<folder> -D COMPILE=<compiler;flags> -D SOURCES=<files> -D PROGRAM=<path> -P pkg_config.cmake
# Compiles, links and runs with nothing but what pkg-config says.
cmake_minimum_required(VERSION 3.25)

set(ENV{PKG_CONFIG_PATH} "${PC_DIR}")
execute_process(COMMAND "${PKG_CONFIG}" --cflags --libs kvlane OUTPUT_VARIABLE flags OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
execute_process(COMMAND ${COMPILE} ${SOURCES} -o "${PROGRAM}" ${flags} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${PROGRAM}" COMMAND_ERROR_IS_FATAL ANY)
