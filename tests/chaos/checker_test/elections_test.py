# SPDX-License-Identifier: BSL-1.0
"""R14: terms rise, no observer is given an older leader than somebody knew, and all learn of a leader that stays."""
from checker_test.story import RuleTest, Story


class Elections(RuleTest):
    def story(self, campaign="within"):
        self.operations = 200
        return Story(campaign)

    def lead(self, story, begin, end, term, worker=0, confirmed=True, value=None):
        """Campaigns at `begin`, is elected 5 later, and resigns at `end`. `term`: None for a candidate that was killed before its answer."""
        self.operations += 1
        op, file = self.operations, story.file_of(worker)
        story.add(file, begin, "campaign", op=op, value=value or f"value-{op}")
        if term is not None:
            story.add(file, begin + 5, "elected", op=op, term=term)
        if end is not None:
            story.add(file, end, "resign", op=op)
            if confirmed:
                story.add(file, end + 2, "resigned", op=op)
        return op

    def proclaim(self, story, begin, op, confirmed=True, worker=0):
        file = story.file_of(worker)
        story.add(file, begin, "proclaim", op=op, value=f"value-{op}-again")
        if confirmed:
            story.add(file, begin + 2, "proclaimed", op=op)

    def see(self, story, begin, end, term, value="", worker=1):
        """`end`: None for a call that was cancelled. `term`: 0 for nobody."""
        self.operations += 1
        file = story.file_of(worker)
        story.add(file, begin, "observe", op=self.operations)
        if end is not None:
            story.add(file, end, "observed", op=self.operations, term=term, **({"value": value} if term else {}))

    def judge(self, story, kept, words=""):
        if kept:
            self.keeps(story)
        else:
            self.breaks("R14", story, words)

    def test_terms_rise_from_grant_to_grant(self):
        for campaign in "within", "outside":
            for second, kept in (8, True), (7, False), (6, False):
                story = self.story(campaign)
                self.lead(story, 10, 30, 7)
                self.lead(story, 40, 60, second, worker=1)
                self.judge(story, kept, f"has the term {second}, and 7 was known before")

    def test_two_candidates_that_ask_together_have_terms_in_any_order_but_not_the_same(self):
        for second, kept in (8, True), (6, True), (7, False):
            story = self.story()
            self.lead(story, 10, None, 7)
            self.lead(story, 11, None, second, worker=1)
            self.judge(story, kept, "has the term 7, as worker-0-1:1 has")

    def test_a_leader_has_a_term(self):
        story = self.story()
        self.lead(story, 10, 30, 0)
        self.judge(story, False, "has the term 0, as no leader has")

    def test_a_term_that_an_observer_knew_is_not_given_again(self):
        for term, kept in (8, True), (7, False):
            story = self.story()
            op = self.lead(story, 10, None, None)  # killed before it knew of its grant
            self.see(story, 12, 20, 7, f"value-{op}")
            self.lead(story, 500, 520, term, worker=2)
            self.judge(story, kept, "has the term 7, and 7 was known before")

    def test_no_observer_is_given_an_older_leader_than_somebody_knew(self):
        for worker in 1, 2:
            for term, kept in (8, True), (0, True), (7, False):
                story = self.story()
                first, second = self.lead(story, 10, None, 7), self.lead(story, 500, None, 8, worker=3)
                self.see(story, 1, 510, 8, f"value-{second}")
                self.see(story, 520, 530, term, f"value-{second if term == 8 else first}", worker)
                self.judge(story, kept, "saw the term 7, and 8 was known before")

    def test_a_call_that_began_before_may_see_the_older_leader(self):
        story = self.story()
        first = self.lead(story, 10, 40, 7)
        self.lead(story, 41, 60, 8)
        self.see(story, 20, 50, 7, f"value-{first}")
        self.keeps(story)

    def test_a_value_is_seen_with_its_leaders_term_alone(self):
        for term, kept in (7, True), (9, False):
            story = self.story()
            op = self.lead(story, 10, 30, 7)
            self.see(story, 16, 20, term, f"value-{op}")
            self.judge(story, kept, "with the term 9 of another")

    def test_a_grant_that_came_too_late_has_a_term_of_its_own_until_the_next(self):
        for begin, term, kept in ((11, 6, True), (14, 6, True), (14, 8, False)):
            story = self.story()
            op = self.lead(story, 10, 30, 7)
            self.see(story, begin, 20, term, f"value-{op}")
            self.judge(story, kept, f"with the term {term} of another")

    def test_a_term_has_one_leader(self):
        story = self.story()
        first, second = self.lead(story, 10, None, None), self.lead(story, 10, None, None, worker=2)
        self.see(story, 12, 20, 7, f"value-{first}")
        self.see(story, 21, 25, 7, f"value-{second}")
        self.judge(story, False, "with the term 7 of another")

    def test_nobody_sees_a_value_before_it_is_given(self):
        story = self.story()
        op = self.lead(story, 10, 100, 7)
        self.see(story, 16, 20, 7, f"value-{op}-again")
        self.proclaim(story, 30, op)
        self.judge(story, False, f"saw the value 'value-{op}-again', which nobody had given")
        story = self.story()
        self.lead(story, 10, 30, 7)
        self.see(story, 16, 20, 7, "foreign")
        self.judge(story, False, "saw the value 'foreign', which nobody had given")

    def test_a_value_that_was_replaced_is_not_seen(self):
        for confirmed in True, False:
            for again, kept in (True, True), (False, not confirmed):
                story = self.story()
                op = self.lead(story, 10, 100, 7)
                self.proclaim(story, 30, op, confirmed)
                self.see(story, 40, 45, 7, f"value-{op}" + ("-again" if again else ""))
                self.judge(story, kept, "that was replaced before")

    def test_a_call_that_began_before_may_see_the_value_that_is_replaced(self):
        story = self.story()
        op = self.lead(story, 10, 100, 7)
        self.proclaim(story, 30, op)
        self.see(story, 31, 45, 7, f"value-{op}")
        self.keeps(story)

    def test_a_leader_that_has_resigned_is_not_seen(self):
        for begin, confirmed, kept in (31, True, True), (33, False, True), (33, True, False):
            story = self.story()
            op = self.lead(story, 10, 30, 7, confirmed=confirmed)
            self.see(story, begin, 40, 7, f"value-{op}")
            self.judge(story, kept, "which had resigned before")

    def long_lead(self, seen_at, until=700, silent=False, calls=(50, 1100), **fault):
        """Elected at 105. The observer, whose client has answers all the time, is given the leader by its first call."""
        story = self.story()
        story.chatter(1, 1500)
        for t in () if silent else range(1, 1500, 10):
            story.hold(t, t + 4, worker=1, lock="lock-of-1")
        op = self.lead(story, 100, until, 7)
        for begin in calls:
            self.see(story, begin, seen_at if begin == calls[0] else None, 7, f"value-{op}")
        if fault:
            story.fault(**fault)
        return story

    def test_each_observer_learns_of_a_leader_that_stays(self):
        for seen_at, kept in (430, True), (450, False), (None, False):
            self.judge(self.long_lead(seen_at), kept, "the observer of worker-1-1 knew of no such term")

    def test_an_observer_that_knows_of_a_later_leader_has_missed_none(self):
        story = self.long_lead(None)
        self.see(story, 60, 430, 8, f"value-{self.lead(story, 400, None, None, worker=2)}")
        self.keeps(story)

    def test_an_observer_learns_later_while_something_is_wrong(self):
        self.keeps(self.long_lead(650, begin=90, end=600, kind="flush all"))
        self.keeps(self.long_lead(650, silent=True))

    def test_an_observer_that_was_killed_learns_nothing(self):
        self.keeps(self.long_lead(None, calls=(50, 400)))

    def test_an_observer_that_begins_later_may_be_told_later(self):
        self.keeps(self.long_lead(650, calls=(120, 1100)))

    def test_a_short_lead_may_be_missed(self):
        self.keeps(self.long_lead(None, until=400))
