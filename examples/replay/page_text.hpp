#pragma once

#include <string_view>

namespace replay {

/// report/page.html with all that it needs in it, but @TITLE@ and @DATA@. Empty where the chart library could not be had at
/// build time. Defined by a source that report/embed-page.cmake makes.
[[nodiscard]] std::string_view page_text() noexcept;

/// That source: without it, the next build tries again.
[[nodiscard]] std::string_view page_source() noexcept;

}  // namespace replay
