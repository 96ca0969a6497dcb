// SPDX-License-Identifier: BSL-1.0
#include "redis/handshake.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/replies.hpp"

using namespace holdfast;
using namespace holdfast::test;
using redis::handshake;
using redis::make_command;
using progress = handshake::progress;
using purpose = handshake::purpose;

namespace {

redis::endpoint plain() {
  redis::endpoint node;
  node.at.host = "h";
  return node;
}

redis::endpoint full() {
  auto node = plain();
  node.login.user = "app";
  node.login.password = "s3cret";
  node.db = 3;
  node.client_name = "holdfast";
  return node;
}

const auto primary = replies::array({replies::string("master"), replies::integer(0), replies::array({})});

progress answer(handshake& h, const std::vector<redis::reply>& all) {
  auto last = progress::more;
  for (const auto& r : all)
    if (last != progress::failed) last = h.on_reply(r);
  return last;
}

redis::reply run(const std::string& id) {
  return replies::string("# Server\r\nredis_version:7.0.15\r\nrun_id:" + id + "\r\ntcp_port:0\r\n");
}

// The verdict on a command connection of `node` whose replies are `all`.
error_code verdict(const redis::endpoint& node, const std::vector<redis::reply>& all) {
  handshake h(node, purpose::commands);
  REQUIRE(answer(h, all) == progress::failed);
  CHECK(h.why().detail.starts_with("redis://h:6379: "));
  CHECK(h.why().detail.find("s3cret") == std::string::npos);
  return h.why().code;
}

}  // namespace

TEST_CASE("a command connection introduces itself in one write") {
  const auto node = full();
  handshake h(node, purpose::commands);
  CHECK(h.take_output() == make_command({"AUTH", "app", "s3cret"}) + make_command({"SELECT", "3"}) +
                               make_command({"CLIENT", "SETNAME", "holdfast"}) + make_command({"CLIENT", "ID"}) +
                               make_command({"INFO", "server"}) + make_command({"ROLE"}));
  CHECK(answer(h, {replies::ok(), replies::ok(), replies::ok(), replies::integer(7), run("ab12"), primary}) ==
        progress::done);
  CHECK(h.take_output().empty());
  REQUIRE(h.id());
  CHECK(h.id()->client == 7);
  CHECK(h.id()->run == "ab12");
  CHECK(h.fencing_refused().empty());
}

TEST_CASE("what is not configured is not sent") {
  const auto node = plain();
  handshake h(node, purpose::commands);
  CHECK(h.take_output() == make_command({"CLIENT", "ID"}) + make_command({"INFO", "server"}) + make_command({"ROLE"}));
  auto old = plain();
  old.login.password = "p";
  CHECK(handshake(old, purpose::commands).take_output().starts_with(make_command({"AUTH", "p"})));
}

TEST_CASE("a subscription connection needs neither database nor role") {
  const auto node = full();
  handshake h(node, purpose::subscriptions);
  CHECK(h.take_output() == make_command({"AUTH", "app", "s3cret"}) + make_command({"CLIENT", "SETNAME", "holdfast"}) +
                               make_command({"CLIENT", "ID"}) + make_command({"INFO", "server"}) +
                               make_command({"PING"}));
  CHECK(answer(h, {replies::ok(), replies::ok(), replies::integer(7), run("ab12"), replies::status("PONG")}) ==
        progress::done);
  REQUIRE(h.id());
  CHECK(h.id()->client == 7);
  CHECK(h.id()->run == "ab12");
}

TEST_CASE("a subscription connection fences its predecessor off, if the server is still the same") {
  const auto node = plain();
  const handshake::identity old{7, "ab12"};
  handshake h(node, purpose::subscriptions, old);
  h.take_output();
  CHECK(answer(h, {replies::integer(8), run("ab12"), replies::status("PONG")}) == progress::more);
  CHECK(h.take_output() == make_command({"CLIENT", "KILL", "ID", "7"}));
  SECTION("done") { CHECK(h.on_reply(replies::integer(1)) == progress::done); }
  SECTION("refused") {
    CHECK(h.on_reply(replies::error("NOPERM no client|kill")) == progress::done);
    CHECK(h.fencing_refused() == "CLIENT KILL: NOPERM no client|kill");
  }
  handshake restarted(node, purpose::subscriptions, old);
  CHECK(answer(restarted, {replies::integer(9), run("cd34"), replies::status("PONG")}) == progress::done);
}

TEST_CASE("a predecessor is fenced off before anything else, if the server is still the same") {
  const auto node = plain();
  const handshake::identity old{7, "ab12"};
  handshake h(node, purpose::commands, old);
  h.take_output();
  CHECK(answer(h, {replies::integer(8), run("ab12"), primary}) == progress::more);
  CHECK(h.take_output() == make_command({"CLIENT", "KILL", "ID", "7"}));
  SECTION("done") { CHECK(h.on_reply(replies::integer(1)) == progress::done); }
  SECTION("it was gone already") { CHECK(h.on_reply(replies::integer(0)) == progress::done); }
  SECTION("refused") {
    CHECK(h.on_reply(replies::error("NOPERM this user has no permissions to run the 'client|kill' command")) ==
          progress::done);
    CHECK(h.fencing_refused() == "CLIENT KILL: NOPERM this user has no permissions to run the 'client|kill' command");
  }
  // Numbers start again with a restart, and another server has its own: 7 may be anybody, whatever our number is now.
  handshake restarted(node, purpose::commands, old);
  CHECK(answer(restarted, {replies::integer(9), run("cd34"), primary}) == progress::done);
  CHECK(restarted.fencing_refused().empty());
}

TEST_CASE("a predecessor is fenced off also where the server keeps the new connection's number to itself") {
  const auto node = plain();
  handshake h(node, purpose::commands, handshake::identity{7, "ab12"});
  h.take_output();
  CHECK(answer(h, {replies::error("NOPERM no number"), run("ab12"), primary}) == progress::more);
  CHECK(h.take_output() == make_command({"CLIENT", "KILL", "ID", "7"}));
  CHECK_FALSE(h.id());
}

TEST_CASE("a server that does not say which run of it this is fences nobody off") {
  const auto node = plain();
  const auto refusal = GENERATE(replies::error("NOPERM no info"),
                                replies::string("# Server\r\nredis_version:7.0.15\r\n"), replies::nil());
  handshake h(node, purpose::commands, handshake::identity{7, "ab12"});
  CHECK(answer(h, {replies::integer(8), refusal, primary}) == progress::done);
  CHECK_FALSE(h.id());
  CHECK(h.fencing_refused() == (refusal.is_error() ? "INFO: NOPERM no info" : "INFO: no run_id"));
}

TEST_CASE("SETNAME, CLIENT ID, INFO and ROLE may be refused") {
  const auto node = full();
  handshake h(node, purpose::commands, handshake::identity{3, "ab12"});
  CHECK(answer(h, {replies::ok(), replies::ok(), replies::error("NOPERM no"), replies::error("NOPERM no client|id"),
                   replies::error("NOPERM no info"), replies::error("NOPERM no role")}) == progress::done);
  CHECK_FALSE(h.id());
  CHECK(h.fencing_refused() == "CLIENT ID: NOPERM no client|id");
  auto proxied = plain();
  handshake p(proxied, purpose::commands);
  CHECK(answer(p, {replies::error("ERR unknown command 'CLIENT'"), replies::error("ERR unknown command 'INFO'"),
                   replies::error("ERR unknown command 'ROLE'")}) == progress::done);
}

TEST_CASE("a refusal in words that nobody knows withholds nothing") {
  const auto* words = GENERATE("ERR something else", "ERR command 'role' is not supported", "-", "",
                               "NOTALLOWED this command", "ERR unknown command `ROLE`, with args beginning with: ");
  auto node = plain();
  node.client_name = "holdfast";
  const auto no = replies::error(words);
  for (const auto why : {purpose::commands, purpose::subscriptions}) {
    handshake h(node, why);
    CHECK(answer(h, {no, no, no, no}) == progress::done);
    CHECK_FALSE(h.id());
    CHECK(h.fencing_refused().starts_with("CLIENT ID: "));
  }
}

TEST_CASE("what a server means that refuses AUTH is said in words of our own") {
  const auto meaning = [](const redis::endpoint& node, const std::string& words) {
    handshake h(node, purpose::commands);
    if (answer(h, {replies::error(words)}) == progress::more)
      answer(h, {replies::ok(), replies::ok(), replies::integer(1), run("r")});
    CHECK(h.why().code == errc::auth_failed);
    return h.why().detail;
  };
  auto with_password = plain();
  with_password.login.password = "s3cret";
  const auto wrong_number = "ERR wrong number of arguments for 'auth' command";
  CHECK(meaning(full(), wrong_number) ==
        "redis://h:6379: the server has no users, as Redis before 6: leave the user out");
  CHECK(meaning(with_password, wrong_number) == "redis://h:6379: AUTH: the server refuses the password");
  CHECK(meaning(full(), "ERR AUTH <password> called without any password configured for the default user.") ==
        "redis://h:6379: the server has no password: leave user and password out");
  CHECK(meaning(full(), "ERR Client sent AUTH, but no password is set") ==
        "redis://h:6379: the server has no password: leave user and password out");
  CHECK(meaning(full(), "ERR invalid password") == "redis://h:6379: AUTH: the server refuses the password");
  CHECK(meaning(full(), "WRONGPASS invalid username-password pair or user is disabled.") ==
        "redis://h:6379: AUTH: WRONGPASS");
}

TEST_CASE("refusals have their own codes") {
  const auto node = full();
  CHECK(verdict(node, {replies::error("WRONGPASS invalid username-password pair or user is disabled.")}) ==
        errc::auth_failed);
  CHECK(verdict(node, {replies::error("ERR invalid password")}) == errc::auth_failed);
  CHECK(verdict(node, {replies::ok(), replies::error("ERR DB index is out of range")}) == errc::invalid_config);
  CHECK(verdict(node, {replies::ok(), replies::error("NOPERM no select")}) == errc::no_permission);
  CHECK(verdict(plain(), {replies::error("NOAUTH Authentication required.")}) == errc::auth_failed);
  CHECK(verdict(plain(), {replies::integer(1), replies::error("NOAUTH Authentication required.")}) ==
        errc::auth_failed);
  CHECK(verdict(plain(), {replies::error("ERR max number of clients reached")}) == errc::server_refused);
  CHECK(verdict(plain(), {replies::integer(1), replies::error("LOADING Redis is loading the dataset in memory")}) ==
        errc::server_refused);
  CHECK(verdict(node, {replies::error("BUSY Redis is busy running a script.")}) == errc::server_refused);
  CHECK(verdict(node, {replies::error("NOREPLICAS Not enough good replicas to write.")}) == errc::server_refused);
  CHECK(verdict(plain(), {replies::error("DENIED Redis is running in protected mode")}) == errc::no_permission);
  CHECK(verdict(plain(), {replies::integer(1), run("r"),
                          replies::array({replies::string("slave"), replies::string("h"), replies::integer(1)})}) ==
        errc::not_primary);
  CHECK(verdict(plain(), {replies::integer(1), run("r"),
                          replies::array({replies::string("sentinel"), replies::array({})})}) == errc::not_primary);
  CHECK(verdict(plain(), {replies::integer(1), run("r"), replies::array({})}) == errc::protocol_error);
  CHECK(verdict(plain(), {replies::ok()}) == errc::protocol_error);
  CHECK(verdict(plain(), {replies::integer(1), run("r"), replies::error("READONLY no role")}) == errc::not_primary);
}

TEST_CASE("ROLE shows a primary and a replica, and one that is withheld shows neither") {
  const auto node = plain();
  const auto met = [&](const redis::reply& role) {
    handshake h(node, purpose::commands);
    answer(h, {replies::integer(7), run("r"), role});
    return std::pair(h.primary(), h.replica());
  };
  CHECK(met(primary) == std::pair(true, false));
  CHECK(met(replies::array({replies::string("slave"), replies::string("h")})) == std::pair(false, true));
  CHECK(met(replies::error("NOPERM no ROLE")) == std::pair(false, false));
}

TEST_CASE("a node of a cluster is refused by name, whatever its role and what the connection is for") {
  const auto node = plain();
  const std::string word = GENERATE("redis_mode", "server_mode");  // Redis' and Valkey's
  const auto info = [&](const std::string& mode) {
    return replies::string("# Server\r\nredis_version:7.0.15\r\n" + word + ':' + mode + "\r\nrun_id:ab12\r\n");
  };
  const auto why = GENERATE(purpose::commands, purpose::subscriptions);
  handshake h(node, why);
  CHECK(answer(h, {replies::integer(7), info("cluster")}) == progress::failed);
  CHECK(h.why().code == errc::not_primary);
  CHECK(h.why().detail == "redis://h:6379: a cluster node; the URL of a cluster begins with redis+cluster://");
  CHECK_FALSE(h.why().mends_itself());
  handshake alone(node, why);
  const auto last = why == purpose::commands ? primary : replies::status("PONG");
  CHECK(answer(alone, {replies::integer(7), info("standalone"), last}) == progress::done);
  REQUIRE(alone.id());
  CHECK(alone.id()->run == "ab12");
  CHECK(alone.server().mode == "standalone");
}

TEST_CASE("a server of another kind than expected is refused, and the text names the URL that fits") {
  using mode = redis::server_mode;
  struct row {
    mode expected;
    std::string says, role, names;  // names nothing: it is accepted
  };
  const std::vector<row> rows{{mode::standalone, "sentinel", "sentinel", "redis+sentinel://"},
                              {mode::standalone, "", "sentinel", "redis+sentinel://"},
                              {mode::sentinel, "sentinel", "sentinel", ""},
                              {mode::sentinel, "", "sentinel", ""},
                              {mode::sentinel, "standalone", "master", "redis://"},
                              {mode::cluster, "cluster", "master", ""},
                              {mode::cluster, "", "master", ""},
                              {mode::cluster, "cluster", "slave", "replica"},
                              {mode::cluster, "standalone", "master", "redis://"},
                              {mode::cluster, "sentinel", "sentinel", "redis+sentinel://"}};
  for (const auto& r : rows) {
    INFO(r.says << ' ' << r.role << ' ' << r.names);
    auto node = plain();
    node.expected = r.expected;
    handshake h(node, purpose::commands);
    const auto info = r.says.empty() ? replies::error("NOPERM no INFO")
                                     : replies::string("# Server\r\nredis_mode:" + r.says + "\r\n");
    auto end = answer(h, {replies::integer(7), info});
    if (end == progress::more) end = h.on_reply(replies::array({replies::string(r.role), replies::array({})}));
    CHECK((end == progress::done) == r.names.empty());
    if (r.names.empty()) continue;
    CHECK(h.why().code == errc::not_primary);
    CHECK(h.why().detail.find(r.names) != std::string::npos);
  }
}

TEST_CASE("a server says what it is, and what it leaves out is empty") {
  const auto node = plain();
  const auto facts = [&](const std::string& info) {
    handshake h(node, purpose::commands);
    CHECK(answer(h, {replies::integer(1), replies::string(info), primary}) == progress::done);
    return h.server();
  };
  const auto redis = facts("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\nrun_id:ab12\r\n");
  CHECK(redis.version == "7.0.15");
  CHECK(redis.mode == "standalone");
  CHECK(redis.run == "ab12");
  CHECK(redis.to_string() == "7.0.15, standalone");
  const auto valkey = facts("# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nserver_mode:standalone\r\n");
  CHECK(valkey.to_string() == "7.2.4, standalone");  // it does not say
  const auto of_its_own =
      facts("# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\nserver_mode:standalone\r\n");
  CHECK(of_its_own.version == "7.2.4");
  CHECK(of_its_own.valkey == "8.1.1");
  CHECK(of_its_own.to_string() == "Valkey 8.1.1, standalone");
  CHECK(valkey.run.empty());
  CHECK(facts("# Server\r\nrun_id:ab12\r\n").to_string().empty());
  CHECK(facts("# Server\r\nredis_version:\x1b[2J\r\n").to_string() == "\\x1b[2J");
  CHECK(facts("# Server\r\nredis_version:" + std::string(1000, '7') + "\r\n").to_string().size() < 100);
}

TEST_CASE("versions that push a client's own writes are known") {
  const auto pushes_own = [](const std::string& version) {
    redis::server_facts server;
    server.version = version;
    return server.pushes_own_writes();
  };
  for (const auto* version : {"5.0.14", "6.0.0", "6.0.20", "6.2.0", "6.2.7", "6.3.4", "7.0.0", "7.0.4"})
    CHECK(pushes_own(version));
  for (const auto* version : {"6.2.8", "6.2.14", "7.0.5", "7.0.15", "7.2.4", "8.0.1", "10.0.0", "255.255.255"})
    CHECK_FALSE(pushes_own(version));
  for (const auto* version : {"", "6", "6.2", "6.2.", "unstable", "6-2-0"}) CHECK_FALSE(pushes_own(version));
}

TEST_CASE("a question that a replica may answer as well is asked of it") {
  auto node = plain();
  node.any_role = true;
  handshake h(node, purpose::commands);
  CHECK(answer(h, {replies::integer(1), run("r"), replies::status("PONG")}) == progress::done);
}

TEST_CASE("a server that cannot save refuses PING as well, and that mends itself") {
  const auto node = plain();
  handshake h(node, purpose::subscriptions);
  CHECK(
      answer(h, {replies::error("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to")}) ==
      progress::failed);
  CHECK(h.why().code == errc::server_refused);
  CHECK(h.why().mends_itself());
}

TEST_CASE("a server without a password is refused for that, unless it is of another kind than is expected") {
  const auto* words = GENERATE("ERR AUTH <password> called without any password configured for the default user.",
                               "ERR Client sent AUTH, but no password is set");
  const auto node = full();
  const auto with_mode = [&](const std::string& mode) {
    return std::vector{replies::error(words), replies::ok(), replies::ok(), replies::integer(1),
                       replies::string("# Server\r\nredis_mode:" + mode + "\r\nrun_id:ab12\r\n")};
  };
  CHECK(verdict(node, with_mode("standalone")) == errc::auth_failed);
  CHECK(verdict(node, with_mode("sentinel")) == errc::not_primary);
  CHECK(verdict(node, {replies::error(words), replies::error("ERR no SELECT here")}) == errc::auth_failed);
}

TEST_CASE("a server that quotes the password is not quoted") {
  const auto node = full();
  handshake h(node, purpose::commands);
  CHECK(h.on_reply(replies::error("ERR unknown command `AUTH`, with args beginning with: `app`, `s3cret`, ")) ==
        progress::failed);
  CHECK(h.why().detail == "redis://h:6379: the server has no AUTH: leave user and password out");
  handshake g(node, purpose::commands);
  CHECK(answer(g, {replies::ok(), replies::error("ERR s3cret s3cret\n")}) == progress::failed);
  CHECK(g.why().detail == "redis://h:6379: ERR *** ***\\x0a");
}

TEST_CASE("a reply too many is an error of the protocol") {
  const auto node = plain();
  handshake h(node, purpose::commands);
  CHECK(answer(h, {replies::integer(1), run("r"), primary, replies::ok()}) == progress::failed);
  CHECK(h.why().code == errc::protocol_error);
}
