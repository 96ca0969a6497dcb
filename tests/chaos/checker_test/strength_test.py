# SPDX-License-Identifier: BSL-1.0
"""A campaign that was too weak to show anything."""
import unittest

import check_history


class Strength(unittest.TestCase):
    found = {"acquisitions": 100, "waited": 34, "of any_of": 1, "of multi_lock": 1, "of a semaphore": 1, "of readers": 1, "of writers": 1,
             "readers beside another client's": 1, "judged waits of readers": 1, "judged waits of writers": 1, "looks at permits": 1, "judged changes": 1, "latches opened": 1, "leaders": 1,
             "leaders seen": 1, "judged observers": 1, "of peers": 1, "of fair locks": 1, "judged waits of fair locks": 1,
             "votes withheld": 1, "lost updates": 1, "hand-overs": {"in a client": 1, "between clients": 1}}

    def weaknesses(self, campaign="within", least=0, **weak):
        return len(list(check_history.weaknesses({**self.found, **weak}, campaign, least)))

    def test_a_campaign_that_could_show_something_is_strong(self):
        self.assertEqual(self.weaknesses(least=100), 0)

    def test_too_few_acquisitions_or_waits_or_no_lost_update_is_weak(self):
        self.assertEqual(self.weaknesses(least=101), 1)
        for weak in {"waited": 33}, {"lost updates": 0}, {"hand-overs": {"between clients": 0}}:
            self.assertEqual(self.weaknesses(**weak), 1)

    def test_a_campaign_without_what_it_is_there_for_is_weak(self):
        for campaign in "within", "outside", "beside", "red":
            of_several = 0 if campaign == "red" else 1
            self.assertEqual(self.weaknesses(campaign, **{"lost updates": 0}), campaign != "beside")
            self.assertEqual(self.weaknesses(campaign, **{"of any_of": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"of multi_lock": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"readers beside another client's": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"judged waits of writers": 0}), campaign == "within")
            self.assertEqual(self.weaknesses(campaign, **{"looks at permits": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"judged changes": 0}), campaign == "within")
            self.assertEqual(self.weaknesses(campaign, **{"latches opened": 0}), campaign in ("within", "beside"))
            self.assertEqual(self.weaknesses(campaign, **{"leaders": 0}), campaign in ("within", "outside"))
            self.assertEqual(self.weaknesses(campaign, **{"leaders seen": 0}), campaign in ("within", "outside"))
            self.assertEqual(self.weaknesses(campaign, **{"judged observers": 0}), campaign == "within")
            self.assertEqual(self.weaknesses(campaign, **{"of fair locks": 0}), of_several)
            self.assertEqual(self.weaknesses(campaign, **{"judged waits of fair locks": 0}), campaign in ("within", "outside"))
            self.assertEqual(self.weaknesses(campaign, **{"of peers": 0}), campaign == "beside")
            self.assertEqual(self.weaknesses(campaign, **{"votes withheld": 0}), 1 - of_several)

    def test_servers_that_replace_each_other_are_looked_at_too(self):
        of_failovers = {"failovers": 1, "slots moved": 1, "lost": 1, "stale writes refused": 1}
        for campaign in "sentinel", "cluster":
            self.assertEqual(self.weaknesses(campaign, **of_failovers), 0)
            self.assertEqual(self.weaknesses(campaign, **{**of_failovers, "looks at permits": 0}), 1)
