# Makes a C++ source of the page that kvlane-replay writes: page.html with page.css, page.js and uPlot in it, so that the program needs no
# file when it runs, and the page no network when it is opened.
#
#   cmake -D FROM=<this folder> -D TO=<folder for npm packages> -D NPM=<npm> -D NPM_INSTALL=<npm-install.cmake> -D OUTPUT=<file>
#         -P embed-page.cmake
#
# Where uPlot cannot be installed, the page is empty: the program builds, and says that it has no charts. With -D WITHOUT_CHARTS=ON it is
# as if that was so, for tests.
if(NOT WITHOUT_CHARTS)
  include("${NPM_INSTALL}")
endif()

set(library "${TO}/node_modules/uplot")
set(page "")
if(NOT WITHOUT_CHARTS AND EXISTS "${library}/dist/uPlot.iife.min.js")
  file(READ "${library}/LICENSE" license)
  file(READ "${library}/dist/uPlot.iife.min.js" uplot)
  file(READ "${library}/dist/uPlot.min.css" uplot_style)
  file(READ "${FROM}/page.html" page)
  file(READ "${FROM}/page.css" style)
  file(READ "${FROM}/page.js" script)
  if("${uplot}${script}${license}" MATCHES "</[Ss][Cc][Rr][Ii][Pp][Tt]|<!--")
    message(FATAL_ERROR "A script that is to be part of a page would end its element early")
  endif()
  string(REPLACE "@STYLE@" "${uplot_style}\n${style}" page "${page}")
  string(REPLACE "@SCRIPT@" "/*!\nuPlot\n\n${license}*/\n${uplot}\n${script}" page "${page}")
elseif(NOT WITHOUT_CHARTS)
  message(NOTICE "kvlane-replay is built without charts: --report will not work. To change that, install npm or reach its registry, remove "
                 "${OUTPUT}, and build again.")
endif()

file(WRITE "${OUTPUT}.page" "${page}")
file(READ "${OUTPUT}.page" bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
# One line of that length would be hard on editors.
string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE "${OUTPUT}" "// Made of examples/replay/report by embed-page.cmake.
#include \"page_text.hpp\"

namespace replay {

namespace {

constexpr unsigned char page[] = {
${bytes}0};

}  // namespace

std::string_view page_text() noexcept { return {reinterpret_cast<char const*>(page), sizeof page - 1}; }

std::string_view page_source() noexcept { return \"${OUTPUT}\"; }

}  // namespace replay
")
