# SPDX-License-Identifier: BSL-1.0
"""The rules for a lock at several servers: R1, R2, R4 and R6."""
from checker.liveness import hand_overs
from checker.quiet import outages
from checker_test.story import LOST, MS, RuleTest, Story


class SeveralServers(RuleTest):
    def test_nothing_that_a_server_forgets_explains_two_holders(self):
        for kind in "flush all", "restart the server empty", "restart the server with old data":
            story = Story("red", servers=5)
            story.hold(10, 20, error=LOST)
            for server in range(5):
                story.fault(15, 17, kind, server=server)
            story.hold(18, 40, worker=1)
            self.breaks("R1", story, "had two holders for 2.0 ms")

    def test_a_forced_unlock_does(self):
        story = Story("red", servers=5)
        story.hold(10, 20, error=LOST)
        story.force(12, 13, worker=1)
        story.hold(18, 40, worker=1)
        self.keeps(story)

    def test_a_copy_of_one_may_strike_later(self):
        for servers, lost, kept in ((5, 3005, True), (5, 3065, False), (1, 3005, False)):
            story = Story("red", servers)
            story.force(8, 9, worker=1)
            op = story.hold(lost - 50, None)
            story.lose(op, lost)
            story.release(op, lost + 1, error=LOST)
            self.assertEqual("R4" not in dict(story.violations()), kept)

    def test_what_is_valid_is_lost_only_if_a_server_may_have_forgotten_it(self):
        for kind, kept in (("flush all", True), ("restart the server with old data", True), ("restart the server with its data", False)):
            story = Story("red", servers=5)
            op = story.hold(10, None)
            story.fault(20, 50, kind, server=3)
            story.lose(op, 100)
            story.release(op, 101, error=LOST)
            self.keeps(story) if kept else self.breaks("R4", story, "and nobody broke it")

    def test_a_majority_may_know_of_fewer_leases_but_of_one(self):
        for got, kept in ((2, True), (1, True), (0, False), (3, False)):
            story = Story("red", servers=5)
            story.chatter(1, 60)
            op = story.hold(10, 40)
            story.reenter(op, 11, 12)
            story.add("worker-0-1", 14, "count", hold=op, since=13 * MS, want=2, got=got)
            self.keeps(story) if kept else self.breaks("R2", story, f"counted {got} times in Redis, held 2 times")

    def unanswered(self, servers, kind="cut", worker=0, at=400):
        story = Story("red", servers=5)
        story.start(0)
        story.chatter(5, at + 500)
        op = story.ask(at, wait=60)
        story.add("worker-0-1", at + 60, "failed", op=op, error="no quorum")
        for server in servers:
            story.fault(300, 350, kind, worker, server)
        return story

    def test_a_call_that_found_no_quorum_was_kept_from_a_majority(self):
        self.keeps(self.unanswered((0, 2, 4)))
        self.keeps(self.unanswered((-1,), "stop a worker"))
        self.breaks("R6", self.unanswered((0, 2)), "failed: no quorum, after 60.0 ms, and nothing was wrong")
        self.breaks("R6", self.unanswered((0, 2, 4), worker=1), "failed: no quorum, after 60.0 ms, and nothing was wrong")

    def test_a_try_gives_a_server_little_time_for_its_vote(self):
        for servers, wait, kept in ((5, 0, True), (5, 60, False), (1, 0, False)):
            story = Story("red", servers)
            story.start(0)
            story.chatter(5, 1000)
            op = story.ask(400, wait=wait)
            story.add("worker-0-1", 400 + max(wait, 10.5), "failed", op=op, error="no quorum")
            self.keeps(story) if kept else self.breaks("R6", story, "failed: no quorum")

    def test_servers_that_may_have_forgotten_something_do_not_vote_for_the_longest_ttl(self):
        for kind, at, kept in (("cut", 1860, True), ("cut", 2000, False), ("flush all", 2000, True), ("flush all", 2600, False)):
            story = self.unanswered((0, 2, 4), kind, worker=-1, at=at)
            self.keeps(story) if kept else self.breaks("R6", story, "and nothing was wrong")

    def test_a_release_or_a_renewal_may_miss_the_one_server_that_made_the_majority(self):
        for servers in (0,), (0, 2), ():
            story = Story("red", servers=5)
            story.start(0)
            story.chatter(5, 1000)
            op = story.hold(400, None)
            story.renew(op, 420, 430, error="no quorum")
            story.release(op, 450, error="not confirmed by Redis")
            for server in servers:
                story.fault(390, 395, "cut", 0, server)
            self.keeps(story) if servers else self.breaks("R6", story, "found no answer, and nothing was wrong")

    def free(self, servers, granted=5700):
        story = Story("red", servers=5)
        op = story.hold(10, 5000)
        story.look(op, 4999, True, valid=390)
        for server in servers:
            story.fault(4500, 4600, "stop the server", server=server)
        story.hold(granted, granted + 10, worker=1, asked=100)
        return story

    def test_a_waiter_gets_what_is_free_though_a_minority_is_silent(self):
        self.keeps(self.free((1, 2, 3)))
        self.breaks("R6", self.free((1, 2)), "waited for 679.0 ms while nobody had it")
        self.keeps(self.free((1, 2), granted=5300))

    def test_hand_overs_are_judged_while_nothing_is_wrong_and_take_no_longer_than_callers_pause(self):
        for took, kept in ((99, True), (101, False)):
            story = Story("red", servers=5)
            for i in range(3):
                at = 10_000 * i
                op = story.hold(at + 10, at + 5000)
                story.look(op, at + 4999, True, valid=390)
                story.hold(at + 5001 + took, at + 5200 + took, worker=1, asked=at + 90)
            self.keeps(story) if kept else self.breaks("R6", story, "3 of 3 hand-overs took more than 100.0 ms")
        self.assertEqual(list(hand_overs(self.free((1,)).history())), [])
        self.assertEqual(len(list(hand_overs(self.free(()).history()))), 1)

    def test_too_few_are_left_while_more_than_a_minority_is_in_trouble(self):
        history = Story("red", servers=3).history()
        self.assertEqual(list(outages(history, [(10, 30, 0), (20, 40, 0), (50, 60, 1)])), [])
        self.assertEqual(list(outages(history, [(10, 30, 0), (20, 40, 2), (25, 60, 0)])), [(20, 40)])
        self.assertEqual(list(outages(history, [(10, 30, -1), (30, 40, 1), (35, 50, 2)])), [(10, 30), (35, 40)])
        self.assertEqual(list(outages(Story().history(), [(10, 30, 0), (20, 40, -1)])), [(10, 40)])
