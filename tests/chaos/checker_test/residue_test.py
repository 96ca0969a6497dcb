# SPDX-License-Identifier: BSL-1.0
"""R8: nothing is left."""
from checker_test.story import RuleTest, Story


class Residue(RuleTest):
    def test_a_key_that_is_left_is_told(self):
        story = Story()
        story.add("driver", 99_000, "residue", key="lock-0", ttl=-1)
        self.breaks("R8", story, "with a TTL of -1 ms")

    def test_a_key_that_is_left_to_its_ttl_is_told_unless_a_worker_did_not_end(self):
        for status, kept in ((0, False), (-1, True)):
            story = Story()
            story.hold(10, 20, token=1)
            story.add("driver", 95_000, "ended", worker=0, life=1, status=status)
            story.add("driver", 95_001, "unreleased", key="lock-0", ttl=300)
            found = [text for rule, text in story.violations() if rule == "R8"]
            self.assertEqual(found, [] if kept else ["the key lock-0 was left by workers that had ended, with a TTL of 300 ms"])

    def test_places_of_killed_clients_may_be_left_until_they_end(self):
        for places, kept in (("u0", True), ("u0 u1", False), ("", False)):
            story = Story()
            story.hold(10, 20, hold_id="u0:1")
            story.hold(30, 40, worker=1, hold_id="u1:1")
            story.add("driver", 50, "killed", worker=0, life=1)
            story.add("driver", 99_000, "residue", key="holdfast_queue:{shared-9}", ttl=20_000, places=places)
            self.assertEqual("R8" not in dict(story.violations()), kept, places)

    def test_a_subscriber_or_a_connection_that_is_left_is_told(self):
        self.keeps(Story())
        self.breaks("R8", Story(), "subscribers", channels=1)
        self.breaks("R8", Story(), "connections", connections=1)
