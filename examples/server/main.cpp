#include "program.hpp"

#include <iostream>

int main(int argc, char** argv) { return server::run_program(argc, argv, {.out = std::cout, .err = std::cerr}); }
