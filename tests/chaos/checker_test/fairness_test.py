# SPDX-License-Identifier: BSL-1.0
"""R9 of a fair_mutex: nobody who asked 20 ms later is served before one that waits, unless that one lost its place."""
from checker.fairness import judged_waits
from checker_test.story import LOST, RuleTest, Story

FAIR = {"lock": "fair-10", "kind": "fair"}
FIRST, SECOND = 1, 2  # workers that wait; worker 0 holds


class Fairness(RuleTest):
    def story(self, busy=(FIRST,), started=-300, **terms):
        """Worker 0 holds the lock from 10 to 100."""
        story = Story(**terms)
        for worker in (0, *busy):
            story.start(worker, started)
            story.chatter(1, 400, worker=worker)
        story.hold(10, 100, **FAIR)
        return story

    def serve(self, story, op, t, worker):
        story.get(op, t, worker=worker)
        story.release(op, t + 5, worker)

    def served(self, first, second, second_asked=60, story=None, **of_first):
        """One who asks at 30 and one who asks later, and when each of them is served."""
        story = story or self.story()
        one = story.ask(30, worker=FIRST, **FAIR, **of_first)
        other = story.ask(second_asked, worker=SECOND, **FAIR)
        self.serve(story, other, second, SECOND)
        if first is not None:
            self.serve(story, one, first, FIRST)
        return story

    def assert_judged(self, story, number):
        self.assertEqual(len(list(judged_waits(story.history()))), number)

    def test_who_asked_first_is_served_first(self):
        self.keeps(self.served(102, 120))
        self.breaks("R9", self.served(120, 102), "fair-10: worker-2-1:1, which had asked 30.0 ms later, was served at")

    def test_a_client_does_not_pass_on_its_own_place_to_one_that_came_later(self):
        story = self.story()
        before = story.ask(20, worker=SECOND, **FAIR)
        story.add("worker-2-1", 80, "cancel", op=before)
        story.add("worker-2-1", 80, "cancelled", op=before, error="Operation canceled")
        self.breaks("R9", self.served(120, 102, story=story))

    def test_who_asked_at_nearly_the_same_time_may_be_first(self):
        self.keeps(self.served(120, 102, second_asked=49))
        self.breaks("R9", self.served(120, 102, second_asked=50))

    def test_nobody_passes_by_asking_once(self):
        story = self.story()
        one = story.ask(30, worker=FIRST, **FAIR)
        story.hold(102, 105, worker=SECOND, asked=101, wait=0, **FAIR)
        self.serve(story, one, 120, FIRST)
        self.breaks("R9", story)

    def test_one_of_thousands_is_too_many(self):
        story = self.story()
        for base in range(0, 240, 2):
            story.hold(140 + base, 141 + base, **FAIR)
        self.breaks("R9", self.served(120, 102, story=story))

    def gives_up(self, after, **terms):
        """One who asked at 30 and whose wait ends at 110, and one who asked at 60 and is served so many milliseconds after that."""
        story = self.story()
        one = story.ask(30, worker=FIRST, **FAIR, **terms)
        story.hold(110 + after, 130, worker=SECOND, asked=60, **FAIR)
        return story, one

    def test_who_gave_up_is_not_waited_for(self):
        for after, kept in ((-2, False), (1, True)):
            story, one = self.gives_up(after, wait=80)
            story.add("worker-1-1", 114, "busy", op=one)
            self.assertEqual("R9" not in dict(story.violations()), kept)

    def test_who_was_cancelled_is_not_waited_for(self):
        for after, kept in ((-2, False), (1, True)):
            story, one = self.gives_up(after)
            story.add("worker-1-1", 110, "cancel", op=one)
            story.add("worker-1-1", 114, "cancelled", op=one, error="Operation canceled")
            self.assertEqual("R9" not in dict(story.violations()), kept)

    def test_who_was_killed_is_not_waited_for(self):
        for after, kept in ((-2, False), (1, True)):
            story, _ = self.gives_up(after)
            story.add("driver", 110, "killed", worker=FIRST, life=1)
            self.assertEqual("R9" not in dict(story.violations()), kept)

    def test_who_lost_it_before_its_body_began_had_been_served(self):
        story, one = self.gives_up(2, as_body=True)
        story.told_lost(105, worker=FIRST, lock="fair-10", hold_id="u1:1")
        story.add("worker-1-1", 130, "failed", op=one, error=LOST)
        self.assertNotIn("R9", dict(story.violations()))

    def test_a_fault_of_its_own_costs_a_waiter_its_place(self):
        for kind in "lose messages", "cut", "lose a reply":
            for worker, kept in ((FIRST, True), (SECOND, False), (0, False)):
                story = self.served(120, 102)
                story.fault(40, 45, kind, worker=worker)
                self.assertEqual("R9" not in dict(story.violations()), kept, (kind, worker))

    def test_a_fault_of_the_server_costs_each_its_place(self):
        for kind in "stop the server", "kill subscribers", "relieve a primary", "move slots", "flush all":
            story = self.served(120, 102)
            story.fault(40, 45, kind)
            self.assertNotIn("R9", dict(story.violations()), kind)

    def test_a_killed_worker_and_a_harmless_fault_cost_the_others_nothing(self):
        for kind, worker in ("kill a worker", SECOND), ("stop a worker", SECOND), ("flush scripts", -1), ("delete locks", -1):
            story = self.served(120, 102)
            story.fault(40, 45, kind, worker=worker)
            self.breaks("R9", story)

    def test_a_deleted_queue_excuses_until_each_has_looked_again(self):
        for deleted, kept in ((50, True), (-290, True), (-310, False), (103, False)):
            story = self.served(120, 102)
            story.fault(deleted, deleted, "lose queues")
            self.assertEqual("R9" not in dict(story.violations()), kept, deleted)

    def test_a_standstill_costs_the_places_of_its_own_process(self):
        for worker, kept in ((FIRST, True), (SECOND, False)):
            story = self.served(120, 102)
            story.add(f"worker-{worker}-1", 90, "stall", since=70_000_000)
            self.assertEqual("R9" not in dict(story.violations()), kept)

    def test_a_process_that_has_stood_still_stands_late_for_a_while(self):
        for begin, end, kept in ((-40, 29, True), (-240, -180, False)):
            story = self.served(120, 102)
            story.add("worker-1-1", end, "stall", since=begin * 1_000_000)
            self.assertEqual("R9" not in dict(story.violations()), kept, end)

    def test_a_process_that_has_just_begun_stands_late_for_a_while(self):
        for started, kept in ((-160, True), (-180, False)):
            story = self.served(120, 102, story=self.story(started=started))
            self.assertEqual("R9" not in dict(story.violations()), kept, started)

    def test_a_process_without_answers_has_lost_its_places(self):
        self.assertNotIn("R9", dict(self.served(120, 102, story=self.story(busy=())).violations()))

    def test_who_found_all_places_of_its_client_taken_waits_in_the_client_first(self):
        for before, kept in ((15, False), (16, True)):
            story = self.story()
            for _ in range(before):
                op = story.ask(20, worker=FIRST, **FAIR)
                story.add("worker-1-1", 101, "cancel", op=op)
                story.add("worker-1-1", 101.5, "cancelled", op=op, error="Operation canceled")
            self.assertEqual("R9" not in dict(self.served(120, 102, story=story).violations()), kept)

    def test_a_grant_that_was_taken_away_before_it_was_heard_of_says_nothing(self):
        for begin, kept in ((70, False), (101, True)):
            story = self.served(120, 102)
            story.force(begin, begin + 1, lock="fair-10", worker=3)
            self.assertEqual("R9" not in dict(story.violations()), kept)
        story = self.served(120, 102)
        story.fault(101, 101, "delete locks")
        self.keeps(story)

    def test_who_waits_for_replicas_gives_back_what_they_have_not(self):
        self.keeps(self.served(120, 102, replicas=1))

    def test_beside_a_peer_the_order_is_its_own(self):
        story = self.served(120, 102, story=self.story(campaign="beside"))
        story.hold(140, 141, worker="peer-0", **FAIR)
        self.keeps(story)

    def test_a_wait_is_judged_if_another_asked_later(self):
        self.assert_judged(self.served(102, 120), 1)
        self.assert_judged(self.served(102, 120, second_asked=49), 0)
        self.assert_judged(self.served(102, 120, story=self.story(busy=())), 0)

