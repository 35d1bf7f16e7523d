# Sourced by the scripts beside it: makes sure that what they need is there.
#
#   require_tools <what>...    commands, headers (names that end in .h or .hpp), runtime libraries of clang (libclang_rt.*)
#
# Debian 12: what is missing is installed with apt, and nothing is asked of apt if nothing is missing. Elsewhere: it is named, and the
# script ends with status 1.

# command, header or library -> Debian package
declare -A package_of=(
  [cmake]=cmake [ninja]=ninja-build [c++]=g++ [pkg-config]=pkg-config
  [clang++-19]=clang-19 [clang-tidy-19]=clang-tidy-19 [libclang_rt.asan]=libclang-rt-19-dev
  [addr2line]=binutils
  [asio.hpp]=libasio-dev [nlohmann/json.hpp]=nlohmann-json3-dev [fmt/format.h]=libfmt-dev [CLI/CLI.hpp]=libcli11-dev
  [gtest/gtest.h]=libgtest-dev [gmock/gmock.h]=libgmock-dev [rapidcheck.h]=librapidcheck-dev
  [benchmark/benchmark.h]=libbenchmark-dev [valgrind]=valgrind
  [prometheus/collectable.h]=prometheus-cpp-dev [promtool]=prometheus
  [restinio/all.hpp]=librestinio-dev
  [node]=nodejs [npm]=npm [chromium]=chromium
)

has_header() {
  printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$1" | c++ -std=c++20 -E -x c++ - >/dev/null 2>&1
}

has_clang_runtime() {
  local file="$1-$(uname -m).a"
  # Without it, clang repeats the name it was given.
  [ "$(clang++-19 -print-file-name="$file" 2>/dev/null)" != "$file" ]
}

missing_of() {
  local name
  for name in "$@"; do
    case "$name" in
      *.h | *.hpp) has_header "$name" || echo "$name" ;;
      libclang_rt.*) has_clang_runtime "$name" || echo "$name" ;;
      *) command -v "$name" >/dev/null || echo "$name" ;;
    esac
  done
}

is_debian_12() {
  [ -r /etc/os-release ] && (. /etc/os-release && [ "${ID:-}" = debian ] && [ "${VERSION_ID:-}" = 12 ])
}

require_tools() {
  local missing as_root=() packages=() name
  mapfile -t missing < <(missing_of "$@")
  [ "${#missing[@]}" -eq 0 ] && return 0

  if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
  if ! is_debian_12 || { [ "${#as_root[@]}" -gt 0 ] && ! command -v sudo >/dev/null; }; then
    printf 'Missing: %s\n' "${missing[*]}" >&2
    echo 'Please install them and try again (on Debian 12, as root or with sudo, this script does).' >&2
    exit 1
  fi
  for name in "${missing[@]}"; do packages+=("${package_of[$name]}"); done
  echo "Installing: ${packages[*]}"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" </dev/null >/dev/null
}

# Whether a package that brings a server may be installed without starting it: the system's policy, which containers set, forbids that.
installs_without_starting() {
  local status=0
  [ -x /usr/sbin/policy-rc.d ] || return 1
  /usr/sbin/policy-rc.d "$1" start >/dev/null 2>&1 || status=$?
  [ "$status" -eq 101 ]
}

# One job for each processor, in builds and in tests; ccache if it happens to be there.
use_all_processors() {
  local count
  count=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
  export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$count}"
  export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$count}"
  if command -v ccache >/dev/null && [ -z "${CMAKE_CXX_COMPILER_LAUNCHER:-}" ]; then
    export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_SLOPPINESS=pch_defines,time_macros
  fi
}
