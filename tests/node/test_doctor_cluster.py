"""`tidewheel doctor` at a cluster of three brokers, of which one dies."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from deploy.kafka.broker import Cluster
from node.admin import wanted
from node.doctor.cluster import examine
from node.settings import ClusterSettings
from runtime.logs.kafka.administration import Administration
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)  # three brokers start, one dies and comes back: on a busy machine two minutes


@pytest.fixture
def settings(three_brokers: Cluster) -> ClusterSettings:
    return ClusterSettings(bootstrap=three_brokers.bootstrap, partitions=1)


def said(settings: ClusterSettings) -> dict[str, str]:
    """What is said → the verdict."""
    return {finding.what: finding.verdict for finding in examine(settings, datetime.now(UTC))}


def fewest_in_sync(administration: Administration) -> int:
    return min(topic.in_sync for topic in administration.topics().values())


def test_a_broker_that_is_away_is_missed_by_the_cluster_and_by_the_topics(three_brokers, settings):
    administration = Administration(settings.log)
    administration.create(wanted.specs(settings, []))
    whole = said(settings)
    assert whole["3 brokers, 3 copies, 2 acknowledge"] == "ok"
    assert len([what for what in whole if " answers at " in what]) == 4  # the cluster, and each of three
    assert "wrong" not in whole.values()

    three_brokers.nodes[2].kill()
    eventually(lambda: len(administration.cluster().brokers) == 2, within=60, what="the dead broker is not told")
    eventually(lambda: fewest_in_sync(administration) == 2, within=60, what="2 copies are up to date")
    broken = said(settings)
    assert broken["no topic can be made: replication_factor is 3, and there are 2 brokers"] == "wrong"
    (lagging,) = [what for what in broken if what.endswith("some copies are not up to date")]
    assert broken[lagging] == "note"

    three_brokers.start()
    eventually(lambda: fewest_in_sync(administration) == 3, within=60, what="3 copies are up to date")
