# SPDX-License-Identifier: BSL-1.0
"""A shared_mutex: R1 by its sides, and R10: a writer that waits keeps newcomers out, and each waits for those before it alone."""
from checker_test.story import LOST, RuleTest, Story

PEER = "peer-0"


class Shared(RuleTest):
    def hold(self, story, kind, begin, end, worker=0, **terms):
        self.ids = getattr(self, "ids", 0) + 1
        return story.hold(begin, end, worker=worker, kind=kind, lock="shared-9", **{"hold_id": f"u{worker}:{self.ids}", **terms})

    def read(self, story, begin, end, **terms):
        return self.hold(story, "reader", begin, end, **terms)

    def write(self, story, begin, end, **terms):
        return self.hold(story, "writer", begin, end, **terms)


class Exclusion(Shared):
    def test_readers_stand_beside_each_other_and_a_writer_beside_nobody(self):
        for one, other, kept in (("reader", "reader", True), ("reader", "writer", False), ("writer", "reader", False), ("writer", "writer", False)):
            story = Story()
            self.hold(story, one, 10, 20)
            self.hold(story, other, 18, 40, worker=1)
            self.assertEqual("R1" not in dict(story.violations()), kept, (one, other))

    def test_a_writer_is_told_with_each_reader_beside_it(self):
        story = Story()
        self.read(story, 10, 20)
        self.read(story, 11, 20, worker=1)
        self.write(story, 15, 30, worker=2)
        self.assertEqual(len([rule for rule, _ in story.violations() if rule == "R1"]), 2)

    def test_a_reader_finds_the_counter_as_it_was(self):
        for last, kept in ((5, True), (6, False)):
            story = Story()
            op = self.read(story, 10, 20)
            story.add("worker-0-1", 19, "read", hold=op, first=5, last=last)
            self.assertEqual("R1" not in dict(story.violations()), kept)

    def test_a_writer_that_has_lost_the_lock_may_write_beside_a_reader(self):
        for lost, kept in ((409, True), (None, False)):
            story = Story()
            writer = self.write(story, 10, None, renewed=False)
            if lost:
                story.lose(writer, lost, lock="shared-9", hold_id="u0:1")
                story.add("worker-0-1", 425, "update", hold=writer, wrote=6)
            reader = self.read(story, 420, 430, worker=1)
            story.add("worker-1-1", 429, "read", hold=reader, first=5, last=6)
            self.assertEqual("R1" not in dict(story.violations()), kept)
            self.ids = 0

    def test_a_reader_that_is_over_may_find_another_counter(self):
        story = Story()
        op = self.read(story, 10, None)
        story.lose(op, 100, lock="shared-9", hold_id="u0:1")
        story.release(op, 102, error=LOST)
        story.add("worker-0-1", 101, "read", hold=op, first=5, last=6)
        self.assertNotIn("and 6 at the end", " ".join(text for _, text in story.violations()))

    def test_a_hold_that_readers_share_has_the_longest_of_their_ttls(self):
        for shared, kept in ((True, True), (False, False)):
            story = Story()
            self.read(story, 10, 20, hold_id="u0:1", ttl=600)
            op = story.ask(11, kind="reader", lock="shared-9")
            story.get(op, 11, valid=580, hold_id="u0:1" if shared else "u0:2")
            story.release(op, 15)
            self.assertEqual("R1" not in dict(story.violations()), kept)


class Door(Shared):
    def overtaken(self, times, asked=100, begin=101, others=(), **terms):
        """A writer waits for a reader from 20 on. Another reader asks, and begins, before that one ends."""
        story = Story(**terms)
        for base in range(0, 1000 * times, 1000):
            if base // 1000 not in others:
                self.read(story, base + begin, base + 110, worker=2, asked=base + asked)
            self.read(story, base + 10, base + 200)
            self.write(story, base + 201, base + 210, worker=1, asked=base + 20)
        return story

    def test_who_asks_later_than_a_writer_does_not_begin_to_read(self):
        self.breaks("R10", self.overtaken(5), "shared-9: 5 of 5 writers were overtaken: worker-2-1:2 began to read 81.0 ms after worker-1-1:1")

    def test_a_few_that_come_later_than_their_turn_say_nothing(self):
        self.keeps(self.overtaken(4))
        self.keeps(self.overtaken(500, others=range(495)))
        self.breaks("R10", self.overtaken(500, others=range(494)), "6 of 500 writers were overtaken")

    def test_who_asked_before_the_writer_or_soon_after_it_may_read(self):
        self.keeps(self.overtaken(5, asked=15))
        self.keeps(self.overtaken(5, asked=30, begin=69))

    def test_after_a_write_all_read_that_waited(self):
        for begin, kept in ((110, True), (113, False)):
            story = Story()
            for base in range(0, 5000, 1000):
                self.write(story, base + 10, base + 60)
                self.read(story, base + 62, base + 200)
                self.read(story, base + begin, base + 150, worker=2, asked=base + 80)
                self.write(story, base + 201, base + 210, worker=1, asked=base + 20)
            self.assertEqual("R10" not in dict(story.violations()), kept)

    def test_a_writer_asks_when_it_is_the_first_of_its_client(self):
        for client, kept in ((0, True), (1, False)):
            story = Story()
            for base in range(0, 5000, 1000):
                before = story.ask(base + 15, worker=1, client=client, lock="shared-9", kind="reader")
                story.add("worker-1-1", base + 150, "cancel", op=before)
                story.add("worker-1-1", base + 150.1, "cancelled", op=before, error="Operation canceled")
                self.read(story, base + 10, base + 200)
                self.read(story, base + 101, base + 110, worker=2, asked=base + 100)
                self.write(story, base + 201, base + 210, worker=1, asked=base + 20)
            self.assertEqual("R10" not in dict(story.violations()), kept)

    def test_nobody_is_judged_while_something_is_wrong_or_a_process_stands_still(self):
        story = self.overtaken(5)
        story.fault(0, 5000, "stop the server")
        self.keeps(story)
        story = self.overtaken(5)
        for base in range(0, 5000, 1000):
            story.add("worker-3-1", base + 70, "stall", since=(base + 50) * 1_000_000)
        story.start(3)
        self.keeps(story)

    def test_redissons_readers_and_writers_keep_no_order(self):
        story = self.overtaken(5, campaign="beside")
        self.read(story, 5000, 5001, worker=PEER)
        self.keeps(story)


class Bounds(Shared):
    def waits(self, kind, late, before="reader"):
        """Somebody waits for a hold of 10 ms, and is granted the lock so long after its end."""
        story = Story()
        for base in range(0, 3000, 1000):
            self.hold(story, before, base + 10, base + 20)
            self.hold(story, kind, base + 21 + late, base + 22 + late, worker=1, asked=base + 15)
        return story

    def test_a_writer_waits_for_the_readers_and_a_hand_over(self):
        self.keeps(self.waits("writer", 50))
        self.breaks("R10", self.waits("writer", 75), "3 of 3 writers waited for longer than the holds before them explain")

    def test_for_a_client_that_writes_before_it_a_writer_waits_longer(self):
        late = [text for rule, text in self.waits("writer", 150, before="writer").violations() if rule == "R10"]
        self.assertEqual(late, [])
        self.breaks("R10", self.waits("writer", 260, before="writer"), "writers waited for longer")

    def test_a_reader_waits_for_a_turn_and_its_hand_overs(self):
        late = [text for rule, text in self.waits("reader", 180, before="writer").violations() if rule == "R10"]
        self.assertEqual(late, [])
        self.breaks("R10", self.waits("reader", 260, before="writer"), "3 of 3 readers waited for longer")
