#pragma once

#include <kvlane/fwd.hpp>
#include <kvlane/result.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

namespace kvlane {

/// Where the ceiling of a reply comes from, and what it comes to once the prompt and the context are known.
///
///     auto const limit = kvlane::token_limit::from_request(body.max_tokens, 4096);
///     if (auto n = limit.resolve(prompt.size(), 8192)) r.max_tokens = *n;
///     else answer(kvlane::to_http(n.error()));
///
/// A client's figure is a ceiling and not a reservation: clients send huge ones to mean "no limit", so it is clamped to
/// what remains of the context and never refused. Thread safety: a value.
class token_limit {
 public:
  enum class source : std::uint8_t {
    asked,           ///< the client named a ceiling
    server_default,  ///< the client named none, the server has one
    whole_context,   ///< whatever remains of the context
  };

  /// As a server default: the whole remaining context.
  static constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

  /// The whole remaining context.
  static token_limit const whole_context;

  /// The limit of a request that asked for `asked` tokens, or named none. `server_default` may be `unlimited`.
  [[nodiscard]] static constexpr token_limit from_request(std::optional<std::uint32_t> asked,
                                                          std::uint32_t server_default) noexcept {
    if (asked) return {source::asked, *asked};
    if (server_default == unlimited) return {source::whole_context, unlimited};
    return {source::server_default, server_default};
  }

  [[nodiscard]] constexpr source kind() const noexcept { return kind_; }
  [[nodiscard]] friend constexpr bool operator==(token_limit const&, token_limit const&) noexcept = default;

  /// Tokens that the reply may have: at most the limit, and at most what the prompt leaves of the context. A prompt longer
  /// than the context is refused with `never_fits`, and the text names both.
  [[nodiscard]] result<std::uint32_t> resolve(std::uint64_t prompt_tokens,
                                              std::uint64_t context_tokens) const noexcept {
    if (prompt_tokens > context_tokens) {
      refusal_facts facts;
      facts.code = errc::never_fits;
      facts.cause = refusal_cause::context;
      facts.asked_tokens = prompt_tokens;
      facts.kv_capacity = context_tokens;
      return rejection{facts};
    }
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(context_tokens - prompt_tokens, tokens_));
  }

 private:
  constexpr token_limit(source kind, std::uint32_t tokens) noexcept : kind_{kind}, tokens_{tokens} {}

  source kind_;
  std::uint32_t tokens_;
};

inline constexpr token_limit token_limit::whole_context{source::whole_context, unlimited};

}  // namespace kvlane
