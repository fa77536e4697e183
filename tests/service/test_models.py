import pytest

from service.container import Phase
from service.errors import NotFoundError, NotReadyError
from service.models import find_model, model_versions, served_models
from tests.service.fakes import serving

pytestmark = pytest.mark.anyio


async def test_a_model_is_found_by_its_name_and_version():
    async with serving() as client:
        running = client.services.running
        assert find_model(client.services, "fake") is running
        assert find_model(client.services, "fake", "1.2.3") is running
        assert served_models(client.services) == [running]
        assert model_versions(client.services, "fake") == ["1.2.3"]
        assert model_versions(client.services, "other") == []


async def test_another_name_or_version_is_not_found_and_what_there_is_is_named():
    async with serving() as client:
        with pytest.raises(NotFoundError, match="'other'"):
            find_model(client.services, "other")
        with pytest.raises(NotFoundError, match=r"'9'; served: 1\.2\.3"):
            find_model(client.services, "fake", "9")


async def test_no_model_is_found_while_the_service_stops():
    async with serving() as client:
        client.services.move_to(Phase.DRAINING, "stopping")
        with pytest.raises(NotReadyError, match="stopping"):
            find_model(client.services, "fake")
