# SPDX-License-Identifier: BSL-1.0
"""The bugs that are planted: each is one change of one place in the library that a tired engineer might make."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    name: str  # what is wrong
    file: str
    before: str  # stands once in the file
    after: str


MUTANTS = [
    Mutant("validity counts from the reply", "src/sync/engine.cpp",
           "add_lease(*h, w.request.asked, w.sent)",
           "add_lease(*h, w.request.asked, around_.now())"),
    Mutant("validity does not allow for drift", "src/sync/terms.hpp",
           "return sent + ttl - drift_of(ttl, rho);",
           "return sent + ttl + milliseconds(rho > 1 ? 1 : 0);"),
    Mutant("a release does not look for its owner", "src/protocol/release.lua",
           "if redis.call('hdel', KEYS[1], ARGV[1]) == 0 then",
           "if redis.call('del', KEYS[1]) == 0 then"),
    Mutant("a cancelled acquire is not given back", "src/sync/waiting_line.cpp",
           "if (sent && !w->field.empty()) host_.give_back(",
           "if (sent && w->field.empty()) host_.give_back("),
    Mutant("a repeated re-entry counts once more", "src/protocol/reenter.lua",
           "if tonumber(count) < want then\n  redis.call('hset', KEYS[1], ARGV[2], string.format('%.0f', want))\nend",
           "redis.call('hincrby', KEYS[1], ARGV[2], 1)"),
    Mutant("a renewal that finds nothing is taken for a confirmation", "src/sync/watchdog.cpp",
           "} else if (said.value[i]) {",
           "} else if (said.value[i] || true) {"),
    Mutant("a new subscription does not look for what it missed", "src/sync/waiting_line.cpp",
           "void waiting_line::on_subscribed() { wake(); }",
           "void waiting_line::on_subscribed() {}"),
    Mutant("messages wake nobody", "src/sync/waiting_line.cpp",
           "return host_.doubt_hold_here(keys_->name);\n  wake();",
           "return host_.doubt_hold_here(keys_->name);"),
    Mutant("a late renewal shortens the TTL", "src/protocol/renew.lua",
           "if redis.call('pttl', KEYS[i]) < ttl then",
           "if true then"),
    Mutant("lost is told a second late", "src/sync/watchdog.cpp",
           "arm(expiry_alarm_, expiries_,",
           "if (!expiries_.empty() && !expiry_alarm_.due()) expiry_alarm_.start(expiries_.begin()->first + "
           "std::chrono::seconds(1), [this] { expire_due(); });\n  else arm(expiry_alarm_, order{},"),
    Mutant("unlock does not disarm the watchdog first", "src/sync/engine.cpp",
           "if (h->leases.empty()) watchdog_.forget(*h);  // disarmed before anything is sent",
           "if (h->leases.empty()) watchdog_.confirm_soon(*h, nanoseconds::zero());"),
    Mutant("the next waiter is forgotten when the first is cancelled", "src/sync/waiting_line.cpp",
           "if (was_first && (step_ == step::idle || waiters_.empty())) advance();",
           "if (was_first && waiters_.empty()) advance();"),
    Mutant("a re-entry makes the hold anew when it is gone", "src/protocol/reenter.lua",
           "if not count then\n  return 0\nend",
           "if not count then\n  redis.call('hset', KEYS[1], ARGV[2], 1)\n  count = 1\nend"),
    Mutant("a confirmation after the validity brings the hold back", "src/sync/watchdog.cpp",
           "if (now >= h.valid_until()) return;",
           "if (now < time_point::min()) return;"),
    Mutant("each attempt has a field of its own", "src/sync/waiting_line.cpp",
           "if (w->field.empty()) w->field = host_.new_field();",
           "w->field = host_.new_field();"),
    Mutant("a grant that is too late to use is kept", "src/sync/waiting_line.cpp",
           "if (around_.now() >= valid_until(w->sent, ttl, around_.settings.drift) - min_validity(ttl)) {",
           "if (around_.now() >= time_point::max()) {"),
    Mutant("a release without an answer is not repeated", "src/sync/releases.cpp",
           "if (!mends || now >= t->give_up) return end(",
           "if (!mends || now >= t->answer_by - (t->answer_by - now)) return end("),
    Mutant("a script that the server forgot is not sent again", "src/sync/surroundings.cpp",
           "if (!o.error && is_unknown_script(o.reply) &&",
           "if (o.error && is_unknown_script(o.reply) &&"),
    Mutant("a link that is up again confirms nothing", "src/sync/watchdog.cpp",
           "} else if (!h->renewing) {\n      schedule_renewal(*h, now);",
           "} else if (!h->renewing && !up) {\n      schedule_renewal(*h, now);"),
    Mutant("the reply of an abandoned command goes to the next", "src/redis/pending_queue.cpp",
           "if (e.done && e.deadline <= now) r.over.push_back({std::exchange(e.done, {}), written});",
           "if (e.done && e.deadline <= now) {\n      r.over.push_back({std::exchange(e.done, {}), written});\n"
           "      if (written) --written_;\n    }"),
    Mutant("a feed in the moment of the pause is missed", "src/sync/watchdog.cpp",
           "    if (!h.wants_renewal(around_.now())) return;  // fed in this moment",
           "    return;  // fed in this moment"),
    Mutant("a loss is told to who has no lease of the hold", "src/sync/reentry.cpp",
           "if (!of_->leases.empty()) return finish(",
           "if (of_->state() == lease_state::lost) return finish("),
    Mutant("a token begins anew when the counter is lost", "src/protocol/acquire_fenced.lua",
           "token = math.max(token + 1, time[1] * 1000000 + time[2])",
           "token = token + 1"),
    Mutant("a wait that is over leaves its subscription", "src/sync/waiting_line.cpp",
           "    park_.stop();\n    subscription_.reset();\n    return host_.line_empty(keys_->name);",
           "    park_.stop();\n    return;"),
]
