import pytest

from orchestrator.connection import connect
from orchestrator.errors import RayUnavailableError
from orchestrator.plan import Cluster


def test_a_cluster_that_does_not_answer_is_named_with_what_to_do():
    nowhere = Cluster(address="127.0.0.1:9", resource="GPU", slots=None, cpus_per_device=1.0, load_cpus=1.0)
    with pytest.raises(RayUnavailableError, match=r"cluster\.address=127\.0\.0\.1:9.*ray start --head"):
        connect(nowhere)
