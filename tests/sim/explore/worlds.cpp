// SPDX-License-Identifier: BSL-1.0
#include "sim/explore/worlds.hpp"

#include <utility>

#include "protocol/fair/fair_lock.hpp"
#include "protocol/permits/permit_lock.hpp"
#include "protocol/shared/shared_lock.hpp"

namespace holdfast::sim::explore {
namespace {

using deployment = detail::deployment;

// A delay ends with the next renewal, a third of the TTL later. So the fourth one is beyond the TTL.
constexpr std::size_t delays_beyond_ttl = 4;

role once(std::size_t client, std::size_t owner = 0) {
  return {.client = client, .owner = owner, .acts = {verb::lock, verb::unlock}};
}

role cancelled(role plays) {
  plays.may_cancel = true;
  return plays;
}

role outer(role plays) {
  plays.outer = true;
  return plays;
}

role at_once(role plays) {
  plays.at_once = true;
  return plays;
}

role unrenewed(role plays) {
  plays.renews = false;
  return plays;
}

role once_or_never(std::size_t client, std::size_t owner = 0) {
  return {.client = client, .owner = owner, .acts = {verb::try_lock, verb::unlock}};
}

role any_of_one(std::size_t client, std::size_t owner) {
  return {.client = client, .owner = owner, .acts = {verb::lock_any, verb::unlock}};
}

role downgrades(std::size_t client, std::size_t owner) {
  return {.client = client, .owner = owner, .acts = {verb::write, verb::downgrade, verb::unlock}};
}

role with_reentry(std::size_t client) {
  return {.client = client, .acts = {verb::lock, verb::lock, verb::unlock, verb::unlock}};
}

role for_permits(std::size_t client, std::size_t owner, std::uint8_t permits) {
  auto plays = once(client, owner);
  plays.permits = permits;
  return plays;
}

role of_side(std::size_t client, verb side, std::size_t owner = 0) {
  return {.client = client, .owner = owner, .acts = {side, verb::unlock}};
}

/// The same world with other callers.
setting played_by(setting of, std::string_view name, std::string_view about, std::vector<role> callers,
                  std::size_t depth) {
  of.name = name;
  of.about = about;
  of.callers = std::move(callers);
  of.symmetric = false;
  of.within = {.delays = 0, .depth = depth};
  return of;
}

/// All callers are of one client, and there is no other one.
setting alone(setting of) {
  of.clients = 1;
  return of;
}

setting fresh(setting of) {
  of.fresh = true;
  return of;
}

setting with(setting of, std::string_view name, std::string_view about, std::uint32_t faults, std::size_t depth) {
  of.name = name;
  of.about = about;
  of.faults = faults;
  of.within = {.delays = 0, .faults = 1, .depth = depth};
  return of;
}

/// Its only caller keeps its hold while the time goes on beyond the TTL, and renewals are sent.
setting kept(const setting& of, std::string_view name, role plays) {
  auto made = alone(played_by(of, name, "a holder that is renewed beyond the TTL", {plays}, search_bounds::none));
  made.within = {.delays = delays_beyond_ttl};
  return fresh(made);
}

/// The same with a fault.
setting kept_with(const setting& of, std::string_view name, std::string_view about, std::uint32_t faults,
                  std::size_t depth) {
  auto made = with(of, name, about, faults, depth);
  made.within.delays = delays_beyond_ttl;
  return made;
}

std::vector<setting> make_worlds() {
  const setting two{.name = "two",
                    .about = "two clients, no fault",
                    .callers = {once(0), once(1)},
                    .symmetric = true,
                    .within = {.delays = 1}};
  const setting reentry{.name = "reentry",
                        .about = "an owner locks twice, and another client waits",
                        .callers = {with_reentry(0), once(1)},
                        .within = {.delays = 0, .depth = 18}};
  const setting pass{.name = "pass",
                     .about = "two callers of one client pass the lock on, and another client waits",
                     .callers = {once(0, 0), once(0, 1), once(1)},
                     .turns = true,
                     .within = {.delays = 0, .depth = 16}};
  const setting cancel{.name = "cancel",
                       .about = "each of two callers may cancel at any point",
                       .callers = {cancelled(once(0)), cancelled(once(1))},
                       .symmetric = true};
  const setting red{.name = "red_lock",
                    .about = "a lock of three servers",
                    .servers = deployment::primaries,
                    .of = &detail::red_plain_lock,
                    .callers = {once(0), once(1)},
                    .symmetric = true,
                    .within = {.delays = 0, .depth = 9}};
  auto red_alone = red;
  red_alone.callers.pop_back();
  red_alone.clients = 1;
  red_alone.symmetric = false;
  const setting followed{.name = "followed",
                         .about = "a primary with two replicas, and sentinels",
                         .servers = deployment::sentinel,
                         .callers = {once(0), once(1)},
                         .symmetric = true,
                         .within = {.delays = 0, .depth = 7}};
  const setting one_permit{.name = "permits_1",
                           .about = "a semaphore with one permit",
                           .of = &detail::permit_lock,
                           .permits = 1,
                           .callers = {once(0), once(1)},
                           .symmetric = true};
  const setting two_permits{.name = "permits_2",
                            .about = "a semaphore with two permits, and three callers",
                            .of = &detail::permit_lock,
                            .permits = 2,
                            .callers = {once(0, 0), once(0, 1), once(1)},
                            .within = {.delays = 0, .depth = 15}};
  const setting shared{.name = "shared",
                       .about = "a reader beside a writer",
                       .of = &detail::shared_writer,
                       .callers = {of_side(0, verb::read), of_side(1, verb::write)},
                       .within = {.delays = 0, .depth = 20}};
  const setting fenced{.name = "fenced",
                       .about = "a lock with tokens",
                       .of = &detail::fenced_lock,
                       .callers = {once(0), once(1)},
                       .symmetric = true};
  const setting simple{.name = "simple",
                       .about = "a lock that is one string",
                       .of = &detail::simple_lock,
                       .callers = {once(0), once(1)},
                       .symmetric = true};
  const setting fair{.name = "fair",
                     .about = "a lock in order",
                     .of = &detail::fair_lock,
                     .callers = {once(0), once(1)},
                     .symmetric = true};
  const std::string_view with_cut = "the same, and a connection ends with its replies";
  const std::string_view with_lost = "the same, and a connection ends with its commands";
  const std::string_view with_late = "the same, and a timer comes before what is on its way";
  const std::string_view with_pause = "the same, and a client stops for a while";
  const std::string_view with_stop = "the same, and the server stops for a while";
  const std::string_view with_restart = "the same, and the server restarts with its data";
  const std::string_view with_loss = "the same, and the server restarts without its data";
  const auto reentry_cancel = played_by(reentry, "reentry_cancel", "the owner that locks twice may cancel",
                                        {cancelled(with_reentry(0)), once(1)}, 16);
  const auto same_owner = played_by(reentry, "same_owner", "two callers of one owner, and another client waits",
                                    {once(0), cancelled(once(0)), once(1)}, 12);
  const auto pass_cancel = played_by(pass, "pass_cancel", "the caller that is passed the lock may cancel",
                                     {once(0, 0), cancelled(once(0, 1)), once(1)}, 13);
  const auto tries = played_by(two, "try_lock", "a try_lock beside a waiter of its client, and another client",
                               {once(0, 0), once_or_never(0, 1), once(1)}, 14);
  auto pushed = played_by(cancel, "push", "the server pushes changes, and a caller may cancel",
                          {once(0), cancelled(once(1))}, 14);
  pushed.push = true;
  auto reentry_push =
      played_by(reentry, "push_reentry", "the server pushes changes, and an owner locks twice", reentry.callers, 14);
  reentry_push.push = true;
  const auto permits_cancel = played_by(two_permits, "permits_cancel", "two permits, and two callers may cancel",
                                        {once(0, 0), cancelled(once(0, 1)), cancelled(once(1))}, 12);
  const auto door = played_by(two_permits, "permits_door", "a caller wants two of two permits, and may cancel",
                              {for_permits(0, 0, 1), cancelled(for_permits(0, 1, 2)), once(1)}, 12);
  const auto shared_cancel = played_by(shared, "shared_cancel", "a reader and a writer may cancel",
                                       {cancelled(of_side(0, verb::read)), cancelled(of_side(1, verb::write))}, 16);
  const auto shared_queue =
      played_by(shared, "shared_queue", "two writers and a reader",
                {of_side(0, verb::write), of_side(1, verb::write), cancelled(of_side(0, verb::read, 1))}, 12);
  const auto readers =
      played_by(shared, "shared_readers", "two readers of one client, and a writer",
                {of_side(0, verb::read, 0), of_side(0, verb::read, 1), cancelled(of_side(1, verb::write))}, 12);
  const auto rides = played_by(fair, "fair_rides", "two callers of one client, and another client",
                               {once(0, 0), cancelled(once(0, 1)), once(1)}, 12);
  auto fair_order = fresh(played_by(fair, "fair_order", "three clients, and each is let in when its turn has come",
                                    {once(0), once(1), once(2)}, 15));
  fair_order.clients = 3;
  fair_order.symmetric = true;
  fair_order.within.delays = 1;
  const auto fair_cancel =
      played_by(fair, "fair_cancel", "each of two callers may cancel", {cancelled(once(0)), cancelled(once(1))}, 15);
  const auto red_cancel = played_by(red, "red_lock_cancel", "a lock of three servers, and a caller may cancel",
                                    {once(0), cancelled(once(1))}, 8);
  const auto red_cancel_alone = fresh(played_by(
      red_alone, "red_cancel", "the only client of a lock of three servers may cancel", {cancelled(once(0))}, 9));
  const auto pass_inner =
      alone(played_by(pass, "pass_inner", "an owner that is passed the lock waits for its own inner call",
                      {once(0, 0), outer(once(0, 1)), once(0, 2), once(0, 1)}, 10));
  const auto grant_inner =
      alone(played_by(two, "grant_inner", "an owner that is granted the lock waits for two inner calls of its own",
                      {outer(once(0, 0)), once(0, 1), once(0, 0), once(0, 0)}, 10));
  const auto shared_inner =
      alone(played_by(shared, "shared_inner", "a reader waits for its own inner call behind a writer",
                      {of_side(0, verb::read, 0), outer(of_side(0, verb::read, 1)), of_side(0, verb::write, 2),
                       of_side(0, verb::read, 1)},
                      10));
  const auto simple_inner =
      alone(played_by(simple, "simple_inner", "the inner call of an owner is refused, and another caller waits",
                      {once(0, 0), outer(once(0, 1)), once(0, 2), once(0, 1)}, 10));
  const auto any_inner =
      alone(played_by(two, "any_inner", "an owner that is granted a lock by lock_any() waits for its own inner call",
                      {once(0, 0), outer(any_of_one(0, 1)), once(0, 2), once(0, 1)}, 9));
  const auto join_inner =
      alone(played_by(shared, "join_inner", "two readers join a third one, and each may have an inner call",
                      {of_side(0, verb::read, 0), outer(of_side(0, verb::read, 1)), outer(of_side(0, verb::read, 2)),
                       of_side(0, verb::write, 3), of_side(0, verb::read, 2)},
                      6));
  const auto downgrade_inner =
      alone(played_by(shared, "downgrade_inner", "a writer that becomes a reader waits for its own inner call",
                      {outer(downgrades(0, 0)), of_side(0, verb::read, 0), of_side(0, verb::write, 1)}, 12));
  const auto unlocks_passed =
      alone(played_by(pass, "unlocks_passed", "two last unlocks wait for a re-entry, and the lock is passed on",
                      {once(0, 0), at_once(unrenewed(once(0, 0))), once(0, 1)}, 12));
  const auto unlocks_released =
      alone(played_by(two, "unlocks_released", "two last unlocks wait for a re-entry, and share a release",
                      {once(0, 0), at_once(unrenewed(once(0, 0))), once(0, 1)}, 12));
  const auto unlocks_readers = alone(played_by(
      shared, "unlocks_readers", "a reader unlocks twice at once, beside another reader",
      {at_once({.acts = {verb::read, verb::read, verb::unlock, verb::unlock}}), of_side(0, verb::read, 1)}, 12));
  auto slow = with(two, "two_slow", "a connection ends with its replies, and a caller is slow", reply_lost, 11);
  slow.within.delays = 1;
  const auto kept_plain = kept(two, "kept", once(0));
  const auto kept_permits = kept(two_permits, "kept_permits", for_permits(0, 0, 2));
  const auto kept_reader = kept(shared, "kept_reader", of_side(0, verb::read));
  return {
      two,
      slow,
      with(two, "two_reply_lost", with_cut, reply_lost, 15),
      with(two, "two_command_lost", with_lost, command_lost, 16),
      with(two, "two_silent", "the same, and a connection is silent", connection_silent, 16),
      with(two, "two_restart", with_restart, server_restart, 7),
      with(two, "two_loss", with_loss, server_loss, 7),
      with(two, "two_server_pause", with_stop, server_pause, 15),
      with(two, "two_client_pause", with_pause, client_pause, 15),
      with(two, "two_late", with_late, late, 13),
      with(two, "two_very_late", "the same, and all on its way takes more than a TTL", very_late, 8),
      reentry,
      with(reentry, "reentry_reply_lost", with_cut, reply_lost, 11),
      reentry_cancel,
      with(fresh(reentry_cancel), "reentry_cancel_lost", with_cut, reply_lost, 8),
      with(fresh(reentry_cancel), "reentry_loss", with_loss, server_loss, 6),
      with(fresh(reentry_cancel), "reentry_client_pause", with_pause, client_pause, 11),
      with(fresh(reentry_cancel), "reentry_server_pause", with_stop, server_pause, 10),
      same_owner,
      with(fresh(same_owner), "same_owner_reply_lost", with_cut, reply_lost, 8),
      with(fresh(same_owner), "same_owner_pause", with_pause, client_pause, 8),
      grant_inner,
      any_inner,
      unlocks_released,
      pass,
      with(pass, "pass_reply_lost", with_cut, reply_lost, 9),
      pass_cancel,
      with(fresh(pass_cancel), "pass_cancel_lost", with_cut, reply_lost, 7),
      pass_inner,
      unlocks_passed,
      cancel,
      with(cancel, "cancel_reply_lost", with_cut, reply_lost, 11),
      with(cancel, "cancel_late", with_late, late, 10),
      with(fresh(cancel), "cancel_command_lost", with_lost, command_lost, 9),
      with(fresh(cancel), "cancel_restart", with_restart, server_restart, 5),
      tries,
      with(fresh(tries), "try_lock_reply_lost", with_cut, reply_lost, 8),
      with(fresh(tries), "try_lock_late", with_late, late, 8),
      pushed,
      with(fresh(pushed), "push_reply_lost", with_cut, reply_lost, 9),
      reentry_push,
      with(fresh(reentry_push), "push_reentry_lost", with_cut, reply_lost, 9),
      red,
      with(red, "red_lock_reply_lost", with_cut, reply_lost, 5),
      with(red_alone, "red_alone_reply_lost", "one client, and a connection ends with its replies", reply_lost, 9),
      with(red_alone, "red_alone_restart", "one client, and a server restarts", server_restart, 6),
      fresh(red_cancel),
      red_cancel_alone,
      with(red_cancel_alone, "red_cancel_lost", with_cut, reply_lost, 8),
      with(red_cancel_alone, "red_cancel_restart", with_restart, server_restart, 6),
      with(red_cancel_alone, "red_command_lost", with_lost, command_lost, 10),
      with(red_cancel_alone, "red_late", with_late, late, 7),
      with(red_cancel_alone, "red_client_pause", with_pause, client_pause, 9),
      with(red_cancel_alone, "red_server_pause", with_stop, server_pause, 8),
      followed,
      with(followed, "failover", "the same, and a replica takes over", failover, 4),
      one_permit,
      with(one_permit, "permits_1_reply_lost", with_cut, reply_lost, 15),
      two_permits,
      permits_cancel,
      with(fresh(permits_cancel), "permits_cancel_lost", with_cut, reply_lost, 7),
      with(fresh(permits_cancel), "permits_command_lost", with_lost, command_lost, 8),
      door,
      with(fresh(door), "permits_door_lost", with_cut, reply_lost, 7),
      shared,
      with(shared, "shared_reply_lost", with_cut, reply_lost, 13),
      shared_cancel,
      with(fresh(shared_cancel), "shared_cancel_lost", with_cut, reply_lost, 8),
      with(fresh(shared_cancel), "shared_client_pause", with_pause, client_pause, 10),
      shared_queue,
      with(fresh(shared_queue), "shared_queue_lost", with_cut, reply_lost, 7),
      readers,
      with(fresh(readers), "shared_readers_lost", with_cut, reply_lost, 7),
      shared_inner,
      join_inner,
      downgrade_inner,
      unlocks_readers,
      fenced,
      with(fenced, "fenced_reply_lost", with_cut, reply_lost, 15),
      simple,
      with(simple, "simple_reply_lost", with_cut, reply_lost, 15),
      simple_inner,
      fair,
      with(fair, "fair_reply_lost", with_cut, reply_lost, 15),
      fair_order,
      fair_cancel,
      with(fresh(fair_cancel), "fair_cancel_lost", with_cut, reply_lost, 8),
      rides,
      with(fresh(rides), "fair_rides_lost", with_cut, reply_lost, 7),
      kept_plain,
      kept_with(kept_plain, "kept_reply_lost", with_cut, reply_lost, 14),
      kept_with(kept_plain, "kept_command_lost", with_lost, command_lost, 17),
      kept_with(kept_plain, "kept_restart", with_restart, server_restart, 11),
      kept_with(kept_plain, "kept_loss", with_loss, server_loss, 11),
      kept_with(kept_plain, "kept_late", with_late, late, 17),
      kept_with(kept_plain, "kept_client_pause", with_pause, client_pause, 20),
      kept_with(kept_plain, "kept_server_pause", with_stop, server_pause, 14),
      kept_permits,
      kept_with(kept_permits, "kept_permits_lost", with_cut, reply_lost, 14),
      kept_reader,
      kept_with(kept_reader, "kept_reader_lost", with_cut, reply_lost, 14),
      kept(shared, "kept_writer", of_side(0, verb::write)),
      kept(simple, "kept_simple", once(0)),
      kept(fenced, "kept_fenced", once(0)),
      kept(two, "kept_reentry", with_reentry(0)),
  };
}

}  // namespace

const std::vector<setting>& all_worlds() {
  static const auto all = make_worlds();
  return all;
}

}  // namespace holdfast::sim::explore
