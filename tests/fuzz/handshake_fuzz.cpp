// SPDX-License-Identifier: BSL-1.0
// A server may answer the handshake with anything: it ends as done or failed, in order, and no text has the password.
#include <string>

#include "fuzz/input.hpp"
#include "redis/handshake.hpp"

using namespace holdfast;
using fuzz::require;
using redis::handshake;

namespace {

constexpr std::string_view password = "Zanzibar";

/// The first byte of a run: what is asked of the server.
enum choice : std::uint8_t { user = 1, secret = 2, database = 4, name = 8, subscriptions = 16, successor = 32 };

redis::endpoint node_of(std::uint8_t chosen) {
  redis::endpoint node;
  node.at.host = "h";
  if (chosen & user) node.login.user = "app";
  if (chosen & (user | secret)) node.login.password = password;
  if (chosen & database) node.db = 3;
  if (chosen & name) node.client_name = "holdfast";
  return node;
}

struct counted {
  std::size_t commands = 0, kills = 0;
};

counted count(std::string_view output) {
  redis::reader commands;
  commands.feed(output);
  counted n;
  while (const auto c = commands.next()) {
    ++n.commands;
    if (c->elements.size() == 4 && c->elements[1].text == "KILL") ++n.kills;
  }
  require(!commands.failed(), "what is written is commands");
  return n;
}

/// Whether the server said that it is still the predecessor's: INFO may say so though CLIENT ID is refused.
bool says_run(const redis::reply& r, const std::string& run) {
  const auto at = r.text.find("\nrun_id:" + run);
  if (at == r.text.npos) return false;
  const auto end = at + 8 + run.size();
  return end == r.text.size() || r.text[end] == '\r' || r.text[end] == '\n';
}

void is_safe(const redis::endpoint& node, std::string_view text) {
  require(fuzz::printable(text), "a text can be printed");
  require(node.login.password.empty() || text.find(node.login.password) == text.npos, "no text has the password");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input bytes(data, size);
  const auto chosen = bytes.byte();
  const auto node = node_of(chosen);
  const auto why = chosen & subscriptions ? handshake::purpose::subscriptions : handshake::purpose::commands;
  const handshake::identity predecessor{7, "ab12"};
  handshake h(node, why, chosen & successor ? std::optional(predecessor) : std::nullopt);

  redis::reader server;
  server.feed(bytes.rest());
  auto open = count(h.take_output()).commands;
  require(open != 0, "there is something to say");
  auto same_run = false;
  auto at = handshake::progress::more;
  while (at == handshake::progress::more) {
    const auto r = server.next();
    if (!r) break;
    same_run |= says_run(*r, predecessor.run);
    at = h.on_reply(*r);
    --open;
    const auto more = count(h.take_output());
    require(more.kills == 0 || ((chosen & successor) && same_run),
            "only a predecessor is fenced off, and only on its own server");
    open += more.commands;
  }
  if (at == handshake::progress::done) require(open == 0, "a handshake is done when all is answered");
  if (at == handshake::progress::more) require(open != 0, "a handshake that goes on waits for an answer");
  require((at == handshake::progress::failed) != h.why().detail.empty(), "a failure has a cause, and nothing else has");
  is_safe(node, h.why().detail);
  is_safe(node, h.fencing_refused());
  return 0;
}
