#include "program.hpp"

#include <iostream>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace {

replay::progress_display progress_where_a_terminal_is() {
#if defined(__unix__) || defined(__APPLE__)
  if (isatty(STDERR_FILENO) != 0) return replay::progress_display::on;
#endif
  return replay::progress_display::off;
}

}  // namespace

int main(int argc, char** argv) {
  return replay::run_program(argc, argv,
                             {.out = std::cout, .err = std::cerr, .default_progress = progress_where_a_terminal_is()});
}
