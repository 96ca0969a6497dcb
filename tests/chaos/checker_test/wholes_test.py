# SPDX-License-Identifier: BSL-1.0
"""R7: any_of and multi_lock; and each other rule where several locks are asked for as one."""
from checker.liveness import hand_overs
from checker_test.story import LOST, RuleTest, Story


class SeveralAsOne(RuleTest):
    BOTH = ("lock-0", "lock-1")

    def test_any_of_has_one_of_those_that_it_asked_for(self):
        for lock, kept in (("lock-1", True), ("lock-2", False)):
            story = Story()
            op = story.ask(9, lock="lock-0 lock-1")
            story.get(op, 10, lock=lock)
            story.release(op, 20)
            self.keeps(story) if kept else self.breaks("R7", story, "was granted lock-2")

    def test_what_any_of_has_is_exclusive(self):
        for second, kept in ((20.5, True), (18, False)):
            story = Story()
            op = story.ask(9, lock="lock-0 lock-1")
            story.get(op, 10, lock="lock-1")
            story.release(op, 20)
            story.hold(second, 40, lock="lock-1", worker=1)
            self.keeps(story) if kept else self.breaks("R1", story, "lock-1 had two holders")

    def test_any_of_that_is_granted_what_its_owner_holds_has_entered_it_again(self):
        for lock, kept in (("lock-1", True), ("lock-0", False)):
            story = Story()
            story.hold(10, 40, lock="lock-0")
            op = story.ask(19, lock="lock-0 lock-1", wait=0)
            story.get(op, 20, lock=lock)
            story.release(op, 30)
            self.keeps(story) if kept else self.breaks("R1", story, "lock-0 had two holders")

    def test_a_multi_lock_has_all_or_none(self):
        for missing, killed, kept in ((False, False, True), (True, False, False), (True, True, True)):
            story = Story()
            ops = story.ask_all(9, self.BOTH)
            for op in ops[:1] if missing else ops:
                story.get(op, 10)
                if not killed:
                    story.release(op, 20)
            if killed:
                story.add("driver", 10, "killed", worker=0, life=1)
            self.keeps(story) if kept else self.breaks("R7", story, "of 2 locks that worker-0-1:1 had asked for it was granted 1")

    def test_each_hold_of_a_multi_lock_is_exclusive(self):
        for second, kept in ((21.5, True), (18, False)):
            story = Story()
            story.hold_all(10, 20, self.BOTH)
            story.hold(second, 40, worker=1, lock="lock-1")
            self.keeps(story) if kept else self.breaks("R1", story, "lock-1 had two holders")

    def looked_at(self, held, whole_held, valid=300, whole_valid=None):
        story = Story()
        ops = story.hold_all(10, None, self.BOTH, renewed=False)
        story.look_all(ops, 100, held, whole_held, valid=valid, whole_valid=whole_valid)
        for op in ops:
            story.release(op, 101, error=None if all(held) else LOST)
        return story

    def test_a_multi_lease_is_held_while_each_of_its_holds_is(self):
        self.keeps(self.looked_at((True, True), True))
        self.breaks("R7", self.looked_at((True, False), True), "was held, though one of its holds was over")
        self.breaks("R7", self.looked_at((True, True), False), "was not held, though each of its holds was")
        self.breaks("R7", self.looked_at((True, True), True, whole_valid=301), "was valid for 301.0 ms, and one of its holds for 300.0 ms")

    def lost(self, first=405, whole=None, released=700):
        story = Story()
        ops = story.hold_all(10, None, self.BOTH)
        if first:
            story.told_lost(first, lock="lock-1")
            story.add("worker-0-1", first, "lost", hold=ops[1], error=LOST)
        if whole:
            story.lose_whole(ops, whole)
        for op in ops:
            story.release(op, released, error=LOST)
        return story

    def test_a_multi_lease_is_lost_with_the_first_of_its_holds(self):
        self.keeps(self.lost(whole=450))
        self.breaks("R7", self.lost(whole=460), "was not said to be lost within 50.0 ms")
        self.breaks("R7", self.lost(), "was not said to be lost within 50.0 ms")
        self.keeps(self.lost(released=440))
        self.breaks("R7", self.lost(first=None, whole=450), "was lost, and none of its holds was")

    def test_the_release_of_a_multi_lock_is_told_of_a_loss_if_one_of_its_holds_may_be_lost(self):
        for brief, kept in ((True, True), (False, False)):
            story = Story()
            ops = story.ask_all(9, self.BOTH)
            story.get(ops[0], 10)
            story.get(ops[1], 10, valid=90 if brief else 390)
            story.lose_whole(ops, 101)
            for op in ops:
                story.release(op, 102, error=LOST)
            found = [text for rule, text in story.violations() if rule == "R2"]
            self.assertEqual(bool(found), not kept, found)

    def test_a_renewal_of_a_multi_lock_is_told_of_a_loss_if_one_of_its_holds_may_be_lost(self):
        for brief, kept in ((True, True), (False, False)):
            story = Story()
            ops = story.ask_all(9, self.BOTH)
            story.get(ops[0], 10)
            story.get(ops[1], 10, valid=90 if brief else 390)
            for op in ops:
                story.renew(op, 110, 111, error=LOST)
                story.release(op, 112, error=LOST)
            found = [text for rule, text in story.violations() if rule == "R4"]
            self.assertEqual(bool(found), not kept, found)

    def test_the_release_of_a_multi_lock_does_not_succeed_after_the_end_of_one_of_its_holds(self):
        story = self.lost(whole=406)
        for events in story.files.values():
            for event in events:
                if event["ev"] == "release_failed":
                    event["ev"] = "released"
                    del event["error"]
        self.breaks("R5", story, "lock-1: worker-0-1:4 was released")

    def tried(self, ends, locks, whole):
        story = Story()
        for lock, end in zip(("lock-0", "lock-1"), ends):
            story.hold(10, end, worker=1, lock=lock)
        if whole:
            story.end_all(story.ask_all(300, locks, wait=0), 301, "busy")
        else:
            story.add("worker-0-1", 301, "busy", op=story.ask(300, wait=0, lock=" ".join(locks)))
        return story

    def test_a_try_of_a_multi_lock_finds_one_busy_and_one_of_any_of_finds_all_so(self):
        self.keeps(self.tried((299.5, 299.5), self.BOTH, whole=True))
        self.keeps(self.tried((290, 299.5), self.BOTH, whole=True))
        self.breaks("R6", self.tried((290, 290), self.BOTH, whole=True), "found it busy, and nobody had it")
        self.keeps(self.tried((299.5, 299.5), self.BOTH, whole=False))
        self.breaks("R6", self.tried((290, 299.5), self.BOTH, whole=False), "found it busy, and nobody had it")

    def test_a_try_of_a_multi_lock_of_several_kinds_has_the_time_of_a_command_for_each_and_of_a_renewal(self):
        for kinds, took, kept in ((1, 170, True), (1, 190, False), (2, 330, True), (2, 350, False)):
            story = Story()
            ops = story.ask_all(10, ("lock-0",), wait=0)
            ops.append(story.ask(10, lock="lock-1", whole=ops[0], wait=0, kind="plain" if kinds == 1 else "simple"))
            story.fault(10, 20, "cut", 0)
            story.end_all(ops, 10 + took, "failed", error="no answer from Redis")
            self.keeps(story) if kept else self.breaks("R6", story, "after its deadline")

    def waited(self, call, frees):
        """Both locks are taken for five seconds, and `frees` of them is free for the last one."""
        story = Story()
        for lock in self.BOTH:
            story.hold(10, 4000 if lock in frees else 5000, lock=lock, worker=1)
            story.look(story.operations, 3999 if lock in frees else 4999, True, worker=1, valid=390)
        call(story)
        return story

    def test_a_multi_lock_waits_while_one_is_not_free_and_not_while_all_are(self):
        wait = lambda story: story.hold_all(5010, 5020, self.BOTH, asked=100)
        self.keeps(self.waited(wait, ()))
        self.keeps(self.waited(wait, ("lock-0",)))
        self.breaks("R6", self.waited(wait, self.BOTH), "lock-0 and lock-1: worker-0-1:1 waited for")

    def test_any_of_waits_while_none_is_free(self):
        def wait(story):
            op = story.ask(100, lock="lock-0 lock-1")
            story.get(op, 5010, lock="lock-1")
            story.release(op, 5020)
        self.keeps(self.waited(wait, ()))
        self.breaks("R6", self.waited(wait, ("lock-0",)), "lock-0: worker-0-1:1 waited for")

    def behind(self, client, kinds):
        def wait(story):
            ops = story.ask_all(90, ("lock-0",))
            ops.append(story.ask(90, lock="lock-1", whole=ops[0], kind="plain" if kinds == 1 else "simple"))
            story.hold(5020, 5030, lock="lock-0", asked=100, client=client)
            for op in ops:
                story.get(op, 5010)
                story.release(op, 5015)
        return self.waited(wait, ("lock-0",))

    def test_who_stands_behind_a_multi_lock_waits_with_it(self):
        self.keeps(self.behind(client=0, kinds=1))
        self.breaks("R6", self.behind(client=1, kinds=1), "lock-0: worker-0-1:3 waited for")
        self.keeps(self.behind(client=1, kinds=2))

    def test_a_lock_is_not_handed_over_to_a_multi_lock_nor_to_who_stands_behind_one(self):
        for client, kinds, judged in ((1, 1, True), (0, 1, False), (1, 2, False)):
            story = Story()
            story.hold(10, 5000, worker=1)
            ops = story.ask_all(90, ("lock-0",))
            ops.append(story.ask(90, lock="lock-1", whole=ops[0], kind="plain" if kinds == 1 else "simple"))
            story.hold(5002, 5100, asked=90, client=client)
            story.end_all(ops, 6000, "cancelled", error="Operation canceled")
            self.assertEqual(bool(list(hand_overs(story.history()))), judged, (client, kinds))

    def test_a_body_of_a_multi_lock_that_never_began_has_lost_one_of_its_locks(self):
        for lock, kept in (("lock-1", True), ("lock-2", False)):
            story = Story()
            ops = story.ask_all(10, self.BOTH, as_body=True)
            story.told_lost(405, lock=lock)
            story.end_all(ops, 407, "failed", error=LOST)
            self.keeps(story) if kept else self.breaks("R6", story, "failed: the lock was lost")
