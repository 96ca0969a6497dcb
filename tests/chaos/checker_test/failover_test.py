# SPDX-License-Identifier: BSL-1.0
"""The rules where another server takes the place of a primary: R1, R3, R4 and R6."""
from checker import history as histories
from checker_test.story import LOST, MS, RuleTest, Story


class Failovers(RuleTest):
    """A primary dies at 1000, and all know of the next one at 3000."""

    def two(self, begin=980, other=2900, end=3090, campaign="sentinel", slots=None, **terms):
        story = Story(campaign)
        story.failover(1000, 1005, 3000, slots)
        op = story.ask(begin - 1, ttl=3000, **terms)
        story.get(op, begin, valid=2960)
        story.release(op, end, error=LOST)
        story.hold(other, 3300, worker=1)
        return story

    def overlaps(self, story, rule="R1"):
        return rule in dict(story.violations())

    def test_what_did_not_reach_the_next_primary_explains_two_holders(self):
        self.keeps(self.two())

    def test_what_had_reached_it_does_not(self):
        self.breaks("R1", self.two(begin=940), "had two holders for 190.0 ms")

    def test_what_was_granted_after_the_end_of_the_old_primary_was_granted_by_the_next(self):
        story = self.two(begin=1050)
        self.assertTrue(self.overlaps(story))

    def test_without_a_failover_that_may_forget_nothing_does(self):
        for kind in ("relieve a primary", "move slots"):
            story = Story("cluster")
            story.fault(15, 17, kind)
            story.hold(10, 20, token=1, error=LOST)
            story.hold(18, 40, token=2, worker=1)
            self.breaks("R1", story)

    def test_who_has_the_lock_hears_of_the_next_primary_in_time(self):
        for end, kept in ((3099, True), (3110, False)):
            self.assertEqual(self.overlaps(self.two(end=end, other=2950)), not kept)

    def test_who_stood_still_hears_of_it_later(self):
        story = self.two(end=3150)
        story.add("worker-0-1", 3140, "stall", since=3050 * MS)
        self.keeps(story)

    def test_the_old_primary_grants_until_its_clients_had_to_leave_it(self):
        for until, asked, kept in ((1005, 2000, False), (9000, 2000, True), (9000, 3101, False)):
            story = Story("sentinel")
            story.failover(1000, until, 3000)
            op = story.ask(asked - 1, ttl=3000)
            story.get(op, asked, valid=2968)
            story.release(op, asked + 40, error=LOST)
            story.hold(asked + 20, asked + 60, worker=1)
            self.assertEqual(self.overlaps(story), not kept)

    def test_a_renewal_that_is_forgotten_leaves_what_was_granted_before(self):
        for other, kept in ((1901, True), (1890, False)):
            story = Story("sentinel")
            story.failover(1000, 1005, 2000)
            op = story.ask(99, ttl=2000)
            story.get(op, 100, valid=1800)
            story.look(op, 980, True, valid=1970)
            story.release(op, 2100, error=LOST)
            story.hold(other, 2200, worker=1)
            self.assertEqual(self.overlaps(story), not kept)

    def test_what_all_that_may_be_elected_had_acknowledged_is_not_forgotten(self):
        self.breaks("R1", self.two(replicas=2))

    def test_a_shard_forgets_nothing_of_the_others(self):
        slot = histories.slot_of("lock-0")
        for begin, end, kept in ((0, slot, True), (slot + 1, 16383, False)):
            story = self.two(campaign="cluster", slots=f"{begin}-{end}")
            self.assertEqual(self.overlaps(story), not kept)

    def test_nodes_of_a_cluster_are_asked_once_a_second(self):
        for end, kept in ((4099, True), (4110, False)):
            story = Story("cluster")
            story.failover(1000, 9000, 3000)
            op = story.ask(1999, ttl=3000)
            story.get(op, 2000, valid=2960)
            story.release(op, end, error=LOST)
            story.hold(4000, 4200, worker=1)
            self.assertEqual(self.overlaps(story), not kept)

    def test_slots_are_those_of_redis(self):
        self.assertEqual(histories.slot_of("foo"), 12182)

    def test_a_loss_is_told_in_time_if_a_failover_made_it(self):
        for t, kept in ((3149, True), (3160, False)):
            story = Story("sentinel")
            story.failover(1000, 1005, 3000)
            op = story.ask(979, ttl=3000)
            story.get(op, 980, valid=2960)
            story.lose(op, t)
            story.release(op, t + 1, error=LOST)
            self.assertEqual(self.overlaps(story, "R4"), not kept)

    def test_of_two_that_were_granted_by_two_primaries_either_may_hear_of_it_first(self):
        for until, kept in ((9000, True), (1005, False)):
            story = Story("sentinel")
            story.failover(1000, until, 3000)
            new = story.ask(3010, worker=1, kind="fenced", ttl=2000)
            old = story.ask(3020, kind="fenced", ttl=2000)
            story.get(old, 3030, token=2, valid=1968)
            story.release(old, 3060, error=LOST)
            story.get(new, 3050, token=1, worker=1, valid=1940)
            story.release(new, 3070, worker=1)
            self.assertEqual(self.overlaps(story, "R3"), not kept)

    def test_a_failover_that_nobody_ordered_is_a_fault(self):
        story = Story("sentinel")
        story.add("driver", 3000, "unordered", since=1000 * MS)
        self.assertEqual([fault[:2] for fault in story.history().faults], [(1000 * MS, 3000 * MS)])

    def test_a_grant_that_replicas_must_have_takes_twice_as_long(self):
        for replicas, kept in ((2, True), (0, False)):
            story = Story("sentinel")
            op = story.ask(10, wait=0, replicas=replicas)
            story.add("worker-0-1", 200, "failed", op=op, error="not replicated")
            story.fault(10, 200, "kill a primary")
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def test_too_few_replicas_are_a_fault(self):
        for wait, kept in ((0, False), (100, True)):
            story = Story("sentinel")
            story.start(0)
            story.chatter(5, 1200)
            op = story.ask(100, wait=wait, replicas=2)
            story.add("worker-0-1", 200, "failed", op=op, error="not replicated")
            self.keeps(story) if kept else self.breaks("R6", story, "and nothing was wrong")

    def test_a_multi_lock_of_several_slots_takes_a_script_for_each(self):
        for campaign, took, kept in (("cluster", 330, True), ("sentinel", 330, False), ("cluster", 350, False)):
            story = Story(campaign)
            ops = story.ask_all(10, ("lock-0", "lock-1"), wait=0)
            story.end_all(ops, 10 + took, "busy")
            self.assertEqual(self.overlaps(story, "R6"), not kept)
