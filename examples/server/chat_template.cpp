#include "chat_template.hpp"

namespace server {

token_ids prompt_of(std::span<chat_message const> messages) {
  token_ids prompt;
  for (auto const& m : messages) {
    prompt.push_back(marker_of(m.from));
    append_tokens(prompt, m.content);
    prompt.push_back(end_of_message);
  }
  prompt.push_back(marker_of(role::assistant));
  return prompt;
}

}  // namespace server
